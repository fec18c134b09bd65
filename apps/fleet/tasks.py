"""Celery tasks of the fleet: runs of its controllers, and subscribers of outbox messages."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.fleet import reconcilers


@shared_task
def sync_inventories() -> int:
    return reconcilers.inventories_sync(at=timezone.now())


@shared_task
def reconcile_isolation() -> int:
    return reconcilers.workload_isolation_reconcile()


@shared_task
def on_cluster_changed(*, cluster_uid: str) -> None:
    reconcilers.inventories_sync(at=timezone.now(), uid=cluster_uid)
