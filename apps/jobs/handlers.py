"""News that jobs react to. What is not theirs is ignored."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.jobs.models import Attempt
from apps.jobs.reconcilers import attempts
from apps.jobs.reconcilers.sweeps import PREFIX
from controlplane.domain.jobs import ATTEMPT


@shared_task
def on_claim_admitted(*, claim_uid: str) -> None:
    _turn(claim_uid)


@shared_task
def on_claim_revoking(*, claim_uid: str) -> None:
    _turn(claim_uid)


@shared_task
def on_attempt_changed(*, attempt_uid: str) -> None:
    attempts.attempts_reconcile(at=timezone.now(), uid=attempt_uid)


@shared_task
def on_launches_changed(*, names: list[str]) -> None:
    """A cluster says that something happened to Launches of these names."""
    uids = [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]
    live = Attempt.objects.filter(uid__in=uids).exclude(state__in=ATTEMPT.final)
    for uid in list(live.values_list("uid", flat=True)):
        attempts.attempts_reconcile(at=timezone.now(), uid=uid)


def _turn(claim_uid: str) -> None:
    uid = Attempt.objects.filter(claim_uid=claim_uid).values_list("uid", flat=True).first()
    if uid is not None:
        attempts.attempts_reconcile(at=timezone.now(), uid=uid)
