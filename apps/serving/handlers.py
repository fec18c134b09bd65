"""News that serving reacts to. What is not its own is ignored."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.serving.models import Replica
from apps.serving.reconcilers import deployments, replicas
from apps.serving.reconcilers.sweeps import PREFIX
from apps.serving.selectors import LIVE_REPLICAS


@shared_task
def on_claim_admitted(*, claim_uid: str) -> None:
    _turn(claim_uid)


@shared_task
def on_claim_revoking(*, claim_uid: str) -> None:
    _turn(claim_uid)


@shared_task
def on_deployment_changed(*, deployment_uid: str) -> None:
    at = timezone.now()
    deployments.deployments_reconcile(at=at, uid=deployment_uid)
    replicas.replicas_reconcile(at=at)


@shared_task
def on_launches_changed(*, names: list[str]) -> None:
    """A cluster says that something happened to Launches of these names."""
    # replica-<uid>-<generation>
    uids = [
        name.removeprefix(PREFIX).rpartition("-")[0] for name in names if name.startswith(PREFIX)
    ]
    live = Replica.objects.filter(uid__in=uids, state__in=LIVE_REPLICAS)
    for uid in list(live.values_list("uid", flat=True)):
        replicas.replicas_reconcile(at=timezone.now(), uid=uid)


def _turn(claim_uid: str) -> None:
    uid = Replica.objects.filter(claim_uid=claim_uid).values_list("uid", flat=True).first()
    if uid is not None:
        replicas.replicas_reconcile(at=timezone.now(), uid=uid)
