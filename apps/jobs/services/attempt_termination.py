"""Termination of attempts: release of their claims, transition of their jobs, and the attempts that follow.

::

    exit ─▶ out of memory? ─▶ lost with its node? ─▶ hardware failure? ──▶ retry policy
              smaller batches    requeue               wait for revocation    back-off, or fail
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.accounts.services import record_audit_entry
from apps.jobs.models import Attempt, AttemptTransition, Job, JobTransition
from apps.jobs.services.lifecycle import claim_request_of_attempt, has_job_ended, resumable_attempt
from apps.quotas import selectors as quotas_selectors
from apps.quotas import services as quotas
from controlplane.domain.common.reasons import Reason
from controlplane.domain.health.snapshots import CrashOrigin
from controlplane.domain.health.suspicions import find_crash_signature
from controlplane.domain.jobs import retries
from controlplane.domain.jobs.lifecycle import (
    ATTEMPT,
    JOB,
    AttemptEvent,
    JobEvent,
    JobKind,
    JobState,
)
from controlplane.domain.jobs.retries import (
    RetryCause,
    RetryDecision,
    ScheduledRetry,
    decide_retry,
    log_shows_killed_worker,
)
from controlplane.domain.quotas.claims import ReleaseReason
from controlplane.outbox.messages import publish_messages
from controlplane.persistence.bulk_writes import bulk_update_rows
from controlplane.persistence.models import new_uid
from controlplane.persistence.state_transitions import RowTransition, apply_transitions
from controlplane.ports.clusters import ExitCause


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTermination:
    attempt: Attempt
    reason: str
    #: Changed fields of the spec for the next attempt, where the job is requeued.
    overrides: Mapping[str, Any] | None = None
    #: Set if the next attempt is an automatic retry, which starts after a back-off.
    retry: ScheduledRetry | None = None
    #: Further columns of the attempt; the same columns for all that end together.
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
    retry: ScheduledRetry | None = None,
    **changes: Any,
) -> None:
    """End the attempt, release its claim and apply ``job_event`` to its job, in one transaction.

    :param overrides: changed fields of the spec for the next attempt, where the job is requeued.
    """
    termination = AttemptTermination(
        attempt=attempt, reason=reason, overrides=overrides, retry=retry, changes=changes
    )
    attempts_end(
        terminations=(termination,), event=event, job_event=job_event, at=at, release=release
    )


@transaction.atomic
def attempts_end(
    *,
    terminations: Sequence[AttemptTermination],
    event: AttemptEvent,
    job_event: JobEvent,
    at: datetime,
    release: ReleaseReason,
) -> None:
    """``attempt_end`` for a batch that ends in the same way, with a constant number of statements.

    :raises LeaseLost: if one of them is leased by another worker now; nothing is written then.
    """
    steps = [
        RowTransition(
            row=termination.attempt,
            reason=termination.reason,
            changes={"message": termination.reason, "ended_at": at, **termination.changes},
        )
        for termination in terminations
    ]
    apply_transitions(steps, ATTEMPT, event, into=AttemptTransition, at=at, leased=True)
    uids = [termination.attempt.claim_uid for termination in terminations]
    quotas.claims_release(uids=uids, reason=release, at=at)
    jobs = _lock_jobs(terminations)
    _transition_jobs(terminations, jobs, job_event, at=at)
    if job_event is JobEvent.REQUEUE:
        _requeue_attempts(terminations, jobs, at=at)


def _lock_jobs(terminations: Iterable[AttemptTermination]) -> Mapping[int, Job]:
    rows = Job.objects.select_for_update(no_key=True, of=("self",))
    rows = rows.select_related("team", "queue", "created_by").order_by("pk")
    return rows.in_bulk([termination.attempt.job_id for termination in terminations])


def _transition_jobs(
    terminations: Iterable[AttemptTermination],
    jobs: Mapping[int, Job],
    event: JobEvent,
    *,
    at: datetime,
) -> None:
    waiting, steps = [], []
    ended_at = None if event is JobEvent.REQUEUE else at
    for termination in terminations:
        job = jobs[termination.attempt.job_id]
        if event is JobEvent.REQUEUE and job.state == JobState.WAITING:
            job.state_reason = termination.reason
            waiting.append(job)
        else:
            changes = {"state_reason": termination.reason, "ended_at": ended_at}
            steps.append(RowTransition(row=job, reason=termination.reason, changes=changes))
    bulk_update_rows(waiting, ("state_reason",))
    apply_transitions(steps, JOB, event, into=JobTransition, at=at)
    over = [step.row for step in steps if has_job_ended(step.row)]
    publish_messages(
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


def _requeue_attempts(
    terminations: Sequence[AttemptTermination], jobs: Mapping[int, Job], *, at: datetime
) -> None:
    """Create the next attempt of each job, with the queue position of the previous one.

    A retry requests its claim only after its back-off: until then it uses nothing and is not queued.
    """
    since = quotas_selectors.queued_since_by_claim([one.attempt.claim_uid for one in terminations])
    fresh, retried, requests = [], [], []
    for termination in terminations:
        before, job = termination.attempt, jobs[termination.attempt.job_id]
        attempt = Attempt(
            job=job,
            number=before.number + 1,
            continues=resumable_attempt(before),
            overrides={**(before.overrides or {}), **(termination.overrides or {})} or None,
            retries=before.retries,
        )
        if termination.retry is not None:
            attempt.retries = termination.retry.number
            attempt.retry_cause = termination.retry.cause
            attempt.starts_after = at + termination.retry.delay
            attempt.message = termination.reason
            retried.append(attempt)
            _audit_retry(attempt)
            continue
        fresh.append(attempt)
        requests.append(claim_request_of_attempt(attempt, in_line_since=since[before.claim_uid]))
    claims = quotas.claims_create(requests=requests)
    for attempt, claim in zip(fresh, claims, strict=True):
        attempt.claim_uid = claim.uid
    Attempt.objects.bulk_create([*fresh, *retried])


def _audit_retry(attempt: Attempt) -> None:
    job = attempt.job
    record_audit_entry(
        job,
        actor=None,
        action="job.auto_retry",
        attempt=attempt.number,
        retry=attempt.retries,
        max_retries=job.resolved_retry_policy.max_retries,
        cause=str(attempt.retry_cause),
    )


#: Exit causes of attempts that their clusters ended without a request of Ninefold: evicted, deleted, or lost with
#: the node.
_LOST_CAUSES = (ExitCause.STOPPED, ExitCause.LOST)
#: A job that is lost more often may be the cause of the failures of its nodes.
MAX_LOST_ATTEMPTS = 5
#: Time to wait for hardware signals after a crash: metrics and conditions arrive every few seconds.
HARDWARE_SIGNAL_TIMEOUT = timedelta(seconds=15)


def can_requeue(attempt: Attempt, cause: ExitCause) -> bool:
    """Whether the job of a lost attempt is requeued without using up a retry."""
    if cause not in _LOST_CAUSES or attempt.job.cancel_requested_at is not None:
        return False
    before = attempt.job.attempts.filter(exit_cause__in=_LOST_CAUSES).exclude(pk=attempt.pk)
    return before.count() < MAX_LOST_ATTEMPTS


def may_be_hardware_failure(log_tail: str, *, ended_at: datetime | None, at: datetime) -> bool:
    """Whether its log looks like a hardware failure, and hardware signals may still arrive."""
    if ended_at is None or at - ended_at >= HARDWARE_SIGNAL_TIMEOUT:
        return False
    crash = find_crash_signature(log_tail)
    return crash is not None and crash.blame is not CrashOrigin.PROGRAM


def retry_decision(
    attempt: Attempt, *, cause: ExitCause, log_tail: str, reason: str
) -> RetryDecision:
    """Decide by the job's retry policy whether it is retried."""
    job = attempt.job
    return decide_retry(
        job.resolved_retry_policy,
        cause=None
        if job.cancel_requested_at is not None
        else _retry_cause(cause, log_tail=log_tail),
        retries=attempt.retries,
        reason=reason,
    )


def _retry_cause(cause: ExitCause, *, log_tail: str) -> RetryCause | None:
    if cause is ExitCause.KILLED:
        return RetryCause.KILLED
    if cause is ExitCause.NOT_PREPARED:
        return RetryCause.ENVIRONMENT_ERROR
    if cause is not ExitCause.FAILED:
        return None
    crash = find_crash_signature(log_tail)
    if crash is not None and crash.blame is CrashOrigin.HARDWARE:
        return RetryCause.HARDWARE_ERROR
    return RetryCause.KILLED if log_shows_killed_worker(log_tail) else RetryCause.USER_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemoryRetry:
    """Whether an attempt that ran out of memory is retried, and the reason."""

    #: Changed fields of the spec for the next attempt; None if the job fails.
    overrides: Mapping[str, int] | None
    reason: str


def out_of_memory_retry(attempt: Attempt) -> OutOfMemoryRetry:
    """Retry with smaller batches while the spec allows another retry and batches can become smaller."""
    job = attempt.job
    if job.kind != JobKind.FINETUNE:
        return OutOfMemoryRetry(
            overrides=None,
            reason=Reason(
                "attempt.out_of_memory.advice", "reduce the batch size, or request more memory"
            ),
        )
    if job.cancel_requested_at is not None:
        return OutOfMemoryRetry(
            overrides=None,
            reason=Reason("attempt.out_of_memory.cancelling", "the job was being cancelled"),
        )
    spec = {**job.spec, **(attempt.overrides or {})}
    smaller = retries.smaller_batch_fields(spec)
    if smaller is None:
        return OutOfMemoryRetry(overrides=None, reason=retries.OUT_OF_MEMORY_ADVICE)
    before = job.attempts.filter(exit_cause=ExitCause.OUT_OF_MEMORY).exclude(pk=attempt.pk)
    allowed = spec.get("out_of_memory_retries", 0)
    if before.count() >= allowed:
        reason = Reason(
            "attempt.out_of_memory.retries_exhausted",
            "batch_size {batch_size} is still too large after {retries} retries; run "
            "the job again with batch_size {smaller_batch_size} and "
            "gradient_accumulation {gradient_accumulation}",
            batch_size=spec["batch_size"],
            retries=allowed,
            smaller_batch_size=smaller["batch_size"],
            gradient_accumulation=smaller["gradient_accumulation"],
        )
        return OutOfMemoryRetry(overrides=None, reason=reason)
    reason = Reason(
        "attempt.out_of_memory.retrying",
        "retrying with batch_size {batch_size} → {smaller_batch_size} and "
        "gradient_accumulation {gradient_accumulation} → "
        "{larger_gradient_accumulation}",
        batch_size=spec["batch_size"],
        smaller_batch_size=smaller["batch_size"],
        gradient_accumulation=spec["gradient_accumulation"],
        larger_gradient_accumulation=smaller["gradient_accumulation"],
    )
    return OutOfMemoryRetry(overrides=smaller, reason=reason)
