"""Handlers of outbox messages."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.fleet import reconcilers


@shared_task
def on_cluster_changed(*, cluster_uid: str) -> None:
    reconcilers.inventories_sync(at=timezone.now(), uid=cluster_uid)
