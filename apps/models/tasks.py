"""Turns of the registry's loops."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.models import reconcilers
from apps.models.services import storage_garbage, storage_retention


@shared_task
def import_models() -> int:
    return reconcilers.models_import(at=timezone.now())


@shared_task
def import_from_hubs() -> int:
    return reconcilers.hub_imports_turn(at=timezone.now())


@shared_task
def measure_storage() -> None:
    storage_garbage.storage_measure(at=timezone.now())


@shared_task
def apply_retention() -> int:
    """How many things it removed."""
    run = storage_retention.retention_run(at=timezone.now())
    return run.removed if run else 0


@shared_task
def collect_garbage() -> int:
    """How many blobs left the disk."""
    run = storage_garbage.garbage_collect(at=timezone.now())
    return run.removed if run else 0
