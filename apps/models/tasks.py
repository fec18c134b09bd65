"""Periodic tasks of the registry's controllers."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.models import reconcilers
from apps.models.services import storage_cleanup


@shared_task
def import_models() -> int:
    return reconcilers.folder_imports_reconcile(at=timezone.now())


@shared_task
def import_from_hubs() -> int:
    return reconcilers.hub_imports_reconcile(at=timezone.now())


@shared_task
def measure_storage() -> None:
    storage_cleanup.measure_artifact_storage(at=timezone.now())


@shared_task
def apply_retention() -> int:
    """Return the number of items removed."""
    run = storage_cleanup.run_retention(at=timezone.now())
    return run.removed if run else 0


@shared_task
def collect_garbage() -> int:
    """Return the number of blobs removed from disk."""
    run = storage_cleanup.garbage_collect(at=timezone.now())
    return run.removed if run else 0
