"""Celery tasks of jobs: runs of their controllers, and subscribers of outbox messages.

Messages about objects of other apps are ignored.
"""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.jobs.models import Attempt
from apps.jobs.reconcilers import attempts, launches
from apps.jobs.reconcilers.launches import PREFIX
from controlplane.domain.jobs.lifecycle import ATTEMPT


@shared_task
def reconcile_attempts() -> int:
    return attempts.attempts_reconcile(at=timezone.now())


@shared_task
def clean_up_launches() -> int:
    return launches.launches_clean_up(at=timezone.now())


@shared_task
def on_claim_admitted(*, claim_uid: str) -> None:
    attempts.attempts_reconcile_for_claim(claim_uid=claim_uid, at=timezone.now())


@shared_task
def on_claim_revoking(*, claim_uid: str) -> None:
    attempts.attempts_reconcile_for_claim(claim_uid=claim_uid, at=timezone.now())


@shared_task
def on_attempt_changed(*, attempt_uid: str) -> None:
    attempts.attempts_reconcile(at=timezone.now(), uids=(attempt_uid,))


@shared_task
def on_launches_changed(*, names: list[str]) -> None:
    """Reconcile the attempts whose Launches a cluster reports as changed."""
    uids = [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]
    live = Attempt.objects.filter(uid__in=uids).exclude(state__in=ATTEMPT.final)
    known = list(live.values_list("uid", flat=True))
    for first in range(0, len(known), attempts.BATCH):
        attempts.attempts_reconcile(at=timezone.now(), uids=known[first : first + attempts.BATCH])
