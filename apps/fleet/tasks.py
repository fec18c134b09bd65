"""Celery tasks of the fleet controllers."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.fleet import reconcilers


@shared_task
def sync_inventories() -> int:
    return reconcilers.inventories_sync(at=timezone.now())


@shared_task
def reconcile_isolation() -> int:
    return reconcilers.isolation_reconcile()
