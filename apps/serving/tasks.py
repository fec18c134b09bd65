"""Periodic tasks of serving."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.serving import reconcilers
from apps.serving.services import gateways


@shared_task
def reconcile_deployments() -> int:
    at = timezone.now()
    return reconcilers.deployments_reconcile(at=at) + reconcilers.replicas_reconcile(at=at)


@shared_task
def clean_up_launches() -> int:
    return reconcilers.replica_launches_cleanup()


@shared_task
def publish_snapshot() -> None:
    gateways.snapshot_publish(at=timezone.now())
