"""Turns of the loops of serving."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.serving.reconcilers import deployments, replicas, sweeps
from apps.serving.services import snapshots


@shared_task
def reconcile_deployments() -> int:
    at = timezone.now()
    return deployments.deployments_reconcile(at=at) + replicas.replicas_reconcile(at=at)


@shared_task
def sweep_launches() -> int:
    return sweeps.launches_sweep()


@shared_task
def publish_snapshot() -> None:
    snapshots.snapshot_publish(at=timezone.now())
