"""Attempts end, one or many at once: their cards are given back and their jobs go on, end, or wait again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from apps.accounts.services import audit
from apps.jobs.models import Attempt, AttemptTransition, Job, JobTransition
from apps.jobs.services.lives import is_over, request_of, resumable
from apps.quotas import selectors as quotas_selectors
from apps.quotas import services as quotas
from controlplane.domain.claims import ReleaseReason
from controlplane.domain.jobs import ATTEMPT, JOB, AttemptEvent, JobEvent, JobState
from controlplane.domain.retries import Retry
from controlplane.outbox.messages import publish_each
from controlplane.persistence.models import new_uid
from controlplane.persistence.moves import Step, move_each
from controlplane.persistence.updates import update_each


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How one attempt ends."""

    attempt: Attempt
    reason: str
    #: Fields of the spec that become others for the attempt that follows, where the job is queued again.
    overrides: Mapping[str, Any] | None = None
    #: The attempt that follows is an automatic retry, which starts after a back-off.
    retry: Retry | None = None
    #: Further columns of the attempt; the same ones for all that end together.
    changes: Mapping[str, Any] = field(default_factory=dict)


def attempt_end(
    *,
    attempt: Attempt,
    event: AttemptEvent,
    job_event: JobEvent,
    at: datetime,
    reason: str,
    release: ReleaseReason,
    overrides: Mapping[str, Any] | None = None,
    retry: Retry | None = None,
    **changes: Any,
) -> None:
    """End the attempt, give back its cards and move its job: all of it or nothing.

    ``overrides`` change fields of the spec for the attempt that follows where the job is queued again.
    """
    ending = Ending(
        attempt=attempt, reason=reason, overrides=overrides, retry=retry, changes=changes
    )
    attempts_end(endings=(ending,), event=event, job_event=job_event, at=at, release=release)


@transaction.atomic
def attempts_end(
    *,
    endings: Sequence[Ending],
    event: AttemptEvent,
    job_event: JobEvent,
    at: datetime,
    release: ReleaseReason,
) -> None:
    """``attempt_end`` for many that end in the same way. Statements do not grow in number with them.

    :raises LeaseLost: if one of them is leased by somebody else now; nothing was written then.
    """
    steps = [
        Step(
            row=ending.attempt,
            reason=ending.reason,
            changes={"message": ending.reason, "ended_at": at, **ending.changes},
        )
        for ending in endings
    ]
    move_each(steps, ATTEMPT, event, into=AttemptTransition, at=at, leased=True)
    uids = [ending.attempt.claim_uid for ending in endings]
    quotas.claims_release(uids=uids, reason=release, at=at)
    jobs = _jobs_locked(endings)
    _jobs_move(endings, jobs, job_event, at=at)
    if job_event is JobEvent.REQUEUE:
        _queue_again(endings, jobs, at=at)


def _jobs_locked(endings: Iterable[Ending]) -> Mapping[int, Job]:
    rows = Job.objects.select_for_update(no_key=True, of=("self",))
    rows = rows.select_related("team", "queue", "created_by").order_by("pk")
    return rows.in_bulk([ending.attempt.job_id for ending in endings])


def _jobs_move(
    endings: Iterable[Ending], jobs: Mapping[int, Job], event: JobEvent, *, at: datetime
) -> None:
    waiting, steps = [], []
    ended_at = None if event is JobEvent.REQUEUE else at
    for ending in endings:
        job = jobs[ending.attempt.job_id]
        if event is JobEvent.REQUEUE and job.state == JobState.WAITING:
            job.state_reason = ending.reason
            waiting.append(job)
        else:
            changes = {"state_reason": ending.reason, "ended_at": ended_at}
            steps.append(Step(row=job, reason=ending.reason, changes=changes))
    update_each(waiting, ("state_reason",))
    move_each(steps, JOB, event, into=JobTransition, at=at)
    over = [step.row for step in steps if is_over(step.row)]
    publish_each(
        "job.ended",
        (
            {
                "event_uid": new_uid(),
                "job_uid": job.uid,
                "state": str(job.state),
                "reason": job.state_reason,
                "at": at.isoformat(),
            }
            for job in over
        ),
    )


def _queue_again(endings: Sequence[Ending], jobs: Mapping[int, Job], *, at: datetime) -> None:
    """A further attempt for each, with the place in line that the one before had.

    A retry requests its claim only after its back-off: until then it occupies nothing and is no part of the queue.
    """
    since = quotas_selectors.in_line_since_each([one.attempt.claim_uid for one in endings])
    fresh, retried, requests = [], [], []
    for ending in endings:
        before, job = ending.attempt, jobs[ending.attempt.job_id]
        attempt = Attempt(
            job=job,
            number=before.number + 1,
            continues=resumable(before),
            overrides={**(before.overrides or {}), **(ending.overrides or {})} or None,
            retries=before.retries,
        )
        if ending.retry is not None:
            attempt.retries = ending.retry.number
            attempt.retry_cause = ending.retry.cause
            attempt.starts_after = at + ending.retry.delay
            attempt.message = ending.reason
            retried.append(attempt)
            _audit_retry(attempt)
            continue
        fresh.append(attempt)
        requests.append(request_of(attempt, in_line_since=since[before.claim_uid]))
    claims = quotas.claims_request(requests=requests)
    for attempt, claim in zip(fresh, claims, strict=True):
        attempt.claim_uid = claim.uid
    Attempt.objects.bulk_create([*fresh, *retried])


def _audit_retry(attempt: Attempt) -> None:
    job = attempt.job
    audit(
        actor=None,
        action="job.auto_retry",
        team=job.team,
        uid=job.uid,
        name=job.name,
        attempt=attempt.number,
        retry=attempt.retries,
        max_retries=job.resolved_retry_policy.max_retries,
        cause=str(attempt.retry_cause),
    )
