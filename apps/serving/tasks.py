"""Celery tasks of serving: runs of its controllers, and subscribers of outbox messages.

Messages about objects of other apps are ignored.
"""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.serving import reconcilers
from apps.serving.models import Replica
from apps.serving.reconcilers import LAUNCH_PREFIX, WEIGHTS_PREFIX
from apps.serving.selectors import LIVE_REPLICAS
from apps.serving.services import gateways


@shared_task
def reconcile_deployments() -> int:
    at = timezone.now()
    return (
        reconcilers.deployments_reconcile(at=at)
        + reconcilers.replicas_reconcile(at=at)
        + reconcilers.weight_downloads_reconcile(at=at)
    )


@shared_task
def clean_up_launches() -> int:
    return reconcilers.replica_launches_cleanup()


@shared_task
def publish_snapshot() -> None:
    gateways.gateway_snapshot_publish(at=timezone.now())


@shared_task
def on_claim_admitted(*, claim_uid: str) -> None:
    _reconcile_replica_of(claim_uid)


@shared_task
def on_claim_revoking(*, claim_uid: str) -> None:
    _reconcile_replica_of(claim_uid)


@shared_task
def on_deployment_changed(*, deployment_uid: str) -> None:
    at = timezone.now()
    reconcilers.deployments_reconcile(at=at, uid=deployment_uid)
    reconcilers.replicas_reconcile(at=at)


@shared_task
def on_launches_changed(*, names: list[str]) -> None:
    """Reconcile the live replicas and weight downloads whose Launches changed on a cluster."""
    # replica-<uid>-<generation>
    uids = [
        name.removeprefix(LAUNCH_PREFIX).rpartition("-")[0]
        for name in names
        if name.startswith(LAUNCH_PREFIX)
    ]
    live = Replica.objects.filter(uid__in=uids, state__in=LIVE_REPLICAS)
    for uid in list(live.values_list("uid", flat=True)):
        reconcilers.replicas_reconcile(at=timezone.now(), uid=uid)
    for name in names:
        if name.startswith(WEIGHTS_PREFIX):
            uid = name.removeprefix(WEIGHTS_PREFIX)
            reconcilers.weight_downloads_reconcile(at=timezone.now(), uid=uid)


def _reconcile_replica_of(claim_uid: str) -> None:
    uid = Replica.objects.filter(claim_uid=claim_uid).values_list("uid", flat=True).first()
    if uid is not None:
        reconcilers.replicas_reconcile(at=timezone.now(), uid=uid)
