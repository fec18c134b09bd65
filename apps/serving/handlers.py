"""News that serving reacts to. What is not its own is ignored."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.serving.models import Replica
from apps.serving.reconcilers import deployments, replicas


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


def _turn(claim_uid: str) -> None:
    uid = Replica.objects.filter(claim_uid=claim_uid).values_list("uid", flat=True).first()
    if uid is not None:
        replicas.replicas_reconcile(at=timezone.now(), uid=uid)
