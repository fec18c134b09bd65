"""What follows when an attempt ends badly: a retry by policy, with smaller batches, or on other cards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.jobs.models import Attempt
from controlplane.domain.health.crashes import signature
from controlplane.domain.health.situations import Blame
from controlplane.domain.jobs import JobKind
from controlplane.domain.retries import RetryCause, RetryDecision, decide, shows_killed_worker
from controlplane.domain.specs import memory
from controlplane.ports.clusters import ExitCause

#: How an attempt ends that its cluster took away while nobody here wanted that: evicted, deleted there, or gone
#: with its node.
_TAKEN_AWAY = (ExitCause.STOPPED, ExitCause.LOST)
#: A job that is taken away more often than that may be what its nodes die of.
MOST_TAKEN_AWAY = 5
#: A program dies of a broken card before anybody has told of it: figures and signs come every few seconds.
HEARING = timedelta(seconds=15)


def may_go_on(attempt: Attempt, cause: ExitCause) -> bool:
    """Whether its job is queued again after that end, as after any other loss of its cards."""
    if cause not in _TAKEN_AWAY or attempt.job.cancel_requested_at is not None:
        return False
    before = attempt.job.attempts.filter(exit_cause__in=_TAKEN_AWAY).exclude(pk=attempt.pk)
    return before.count() < MOST_TAKEN_AWAY


def may_be_broken_hardware(log_tail: str, *, ended_at: datetime | None, at: datetime) -> bool:
    """Whether it crashed as on broken hardware, and so lately that its cards may yet be taken back."""
    if ended_at is None or at - ended_at >= HEARING:
        return False
    crash = signature(log_tail)
    return crash is not None and crash.blame is not Blame.PROGRAM


def retry_decision(
    attempt: Attempt, *, cause: ExitCause, log_tail: str, reason: str
) -> RetryDecision:
    """Whether the job's retry policy starts it again after that end."""
    job = attempt.job
    return decide(
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
    crash = signature(log_tail)
    if crash is not None and crash.blame is Blame.HARDWARE:
        return RetryCause.HARDWARE_ERROR
    return RetryCause.KILLED if shows_killed_worker(log_tail) else RetryCause.USER_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAnswer:
    """Whether it is tried again, and the words for it."""

    #: Fields of the spec for the next attempt; None where there is to be none.
    overrides: Mapping[str, int] | None
    reason: str


def memory_answer(attempt: Attempt) -> MemoryAnswer:
    """Smaller batches as long as the spec allows another try and batches can become smaller."""
    job = attempt.job
    if job.kind != JobKind.FINETUNE:
        return MemoryAnswer(overrides=None, reason="ask for less at once, or for more memory")
    if job.cancel_requested_at is not None:
        return MemoryAnswer(overrides=None, reason="it was being cancelled")
    spec = {**job.spec, **(attempt.overrides or {})}
    smaller = memory.smaller_batches(spec)
    if smaller is None:
        return MemoryAnswer(overrides=None, reason=memory.ADVICE)
    before = job.attempts.filter(exit_cause=ExitCause.OUT_OF_MEMORY).exclude(pk=attempt.pk)
    allowed = spec.get("out_of_memory_retries", 0)
    if before.count() >= allowed:
        reason = (
            f"batch_size {spec['batch_size']} is still too much after {allowed} retries; run it again with "
            f"batch_size {smaller['batch_size']} and gradient_accumulation {smaller['gradient_accumulation']}"
        )
        return MemoryAnswer(overrides=None, reason=reason)
    reason = (
        f"it is tried again with batch_size {spec['batch_size']} → {smaller['batch_size']} and "
        f"gradient_accumulation {spec['gradient_accumulation']} → {smaller['gradient_accumulation']}"
    )
    return MemoryAnswer(overrides=smaller, reason=reason)
