"""News that jobs react to. What is not theirs is ignored."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.jobs.models import Attempt
from apps.jobs.reconcilers import attempts


@shared_task
def on_claim_admitted(*, claim_uid: str) -> None:
    _turn(claim_uid)


@shared_task
def on_claim_revoking(*, claim_uid: str) -> None:
    _turn(claim_uid)


@shared_task
def on_attempt_changed(*, attempt_uid: str) -> None:
    attempts.attempts_reconcile(at=timezone.now(), uid=attempt_uid)


def _turn(claim_uid: str) -> None:
    uid = Attempt.objects.filter(claim_uid=claim_uid).values_list("uid", flat=True).first()
    if uid is not None:
        attempts.attempts_reconcile(at=timezone.now(), uid=uid)
