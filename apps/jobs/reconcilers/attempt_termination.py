"""Stop attempts whose claims are revoked or whose jobs are cancelled, in batches.

A broken switch or many broken cards affect the gangs of hundreds of cards at once, and none of their jobs is
placed again before its cards are released. So a batch executes as few statements as one attempt does.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import monotonic

from apps.jobs import services
from apps.jobs.models import Attempt, AttemptTransition
from apps.jobs.reconcilers import launches
from apps.jobs.reconcilers.attempt_context import AttemptReconcileContext
from controlplane.domain.common.reasons import Reason
from controlplane.domain.jobs.lifecycle import ATTEMPT, AttemptEvent, AttemptState, JobEvent
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.persistence.state_transitions import RowTransition, apply_transitions

log = logging.getLogger(__name__)

GRACE = timedelta(seconds=30)
#: States in which an attempt can be stopped.
STOPPABLE = (AttemptState.ADMITTED, AttemptState.LAUNCHED, AttemptState.RUNNING)
#: Logs of stopped attempts are archived one after the other. After so many seconds the attempts archived so far
#: are ended: their leases expire, and their cards should not wait for the longest log.
_FLUSH_INTERVAL_SECONDS = 1.0

#: Attempts end together if these are equal: release reason, event of the job, columns written.
_TerminationGroup = tuple[ReleaseReason, JobEvent, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoppedAttempt:
    """An attempt without running processes, with the event of its job and the release reason of its claim."""

    termination: services.AttemptTermination
    event: JobEvent
    release: ReleaseReason


def stop_is_requested(attempt: Attempt, context: AttemptReconcileContext) -> bool:
    """Whether its job is cancelled or its claim is revoked."""
    claim = context.claims.get(attempt.claim_uid)
    revoked = claim is not None and claim.state == ClaimState.REVOKING
    return revoked or attempt.job.cancel_requested_at is not None


def request_attempt_stop(attempts: Sequence[Attempt], context: AttemptReconcileContext) -> None:
    """Stop the Launch of each of them."""
    for attempt in _apply_to_attempt_batch(
        attempts, context, partial(_stop_attempts, context=context)
    ):
        with context.isolate_attempt_errors(attempt):
            if not context.is_unreachable(attempt):
                launches.stop_attempt(attempt, grace=_remaining_grace(attempt, context))


def confirm_stopped_attempts(attempts: Sequence[Attempt], context: AttemptReconcileContext) -> None:
    """End attempts without running processes; stop the others again."""
    stopped: list[_StoppedAttempt] = []
    since = monotonic()

    def flush() -> None:
        nonlocal since
        if monotonic() - since > _FLUSH_INTERVAL_SECONDS:
            _end_stopped_attempts(stopped, context)
            stopped.clear()
            since = monotonic()

    for attempt in attempts:
        with context.isolate_attempt_errors(attempt):
            if not context.is_unreachable(attempt) and _confirm_or_repeat_stop(attempt, context):
                # After each chunk as well: a long log may take longer than the leases of the others last.
                stopped.append(_stopped_attempt(attempt, after_chunk=flush))
        flush()
    _end_stopped_attempts(stopped, context)


def _stop_attempts(attempts: Sequence[Attempt], context: AttemptReconcileContext) -> None:
    steps = []
    for attempt in attempts:
        if attempt.job.cancel_requested_at is not None:
            stop_reason, reason = ReleaseReason.CANCELLED, cancelled_by_user_reason(attempt)
        else:
            stop_reason = ReleaseReason(context.claim(attempt).release_reason)
            reason = Reason("launch.stop.evicted", "evicting ({reason})", reason=stop_reason)
        reason = Reason("attempt.state.stopping", "stopping: {reason}", reason=reason)
        changes = {"message": reason, "stop_reason": stop_reason}
        steps.append(RowTransition(row=attempt, reason=reason, changes=changes))
    apply_transitions(
        steps, ATTEMPT, AttemptEvent.STOP, into=AttemptTransition, at=context.at, leased=True
    )


def cancelled_by_user_reason(attempt: Attempt) -> str:
    return Reason(
        "transition.by_user.cancelled", "cancelled by {user}", user=attempt.job.cancel_requested_by
    )


def _remaining_grace(attempt: Attempt, context: AttemptReconcileContext) -> timedelta:
    """The rest of the grace period."""
    revoke_by: datetime | None = context.claim(attempt).revoke_by
    if attempt.stop_reason == ReleaseReason.CANCELLED or revoke_by is None:
        return GRACE
    return max(timedelta(), revoke_by - context.at)


def _confirm_or_repeat_stop(attempt: Attempt, context: AttemptReconcileContext) -> bool:
    """Whether no process of it runs; stops it again otherwise."""
    observed = context.observed(attempt)
    if observed is None or observed.ended:
        return True
    # The worker may have died before it stopped the Launch, and the grace period may have become shorter.
    launches.stop_attempt(attempt, grace=_remaining_grace(attempt, context))
    return False


def _stopped_attempt(attempt: Attempt, *, after_chunk: Callable[[], None]) -> _StoppedAttempt:
    """:raises ValueError: if the row has no stop reason; the other attempts of the batch are not affected."""
    cancelled = attempt.job.cancel_requested_at is not None
    return _StoppedAttempt(
        termination=services.AttemptTermination(
            attempt=attempt,
            reason=cancelled_by_user_reason(attempt)
            if cancelled
            else Reason(
                "attempt.state.requeued_after_stop",
                "waiting for cards again ({reason})",
                reason=attempt.stop_reason,
            ),
            changes=launches.archive_log(attempt, after_chunk=after_chunk),
        ),
        event=JobEvent.CANCEL if cancelled else JobEvent.REQUEUE,
        release=ReleaseReason(attempt.stop_reason),
    )


def _end_stopped_attempts(
    stopped: Sequence[_StoppedAttempt], context: AttemptReconcileContext
) -> None:
    groups: dict[_TerminationGroup, dict[int, services.AttemptTermination]] = defaultdict(dict)
    for each in stopped:
        termination = each.termination
        group = each.release, each.event, frozenset(termination.changes)
        groups[group][termination.attempt.pk] = termination
    for (release, event, _), members in groups.items():

        def apply(
            attempts: Sequence[Attempt],
            members: Mapping[int, services.AttemptTermination] = members,
            release: ReleaseReason = release,
            event: JobEvent = event,
        ) -> None:
            services.attempts_end(
                terminations=[members[attempt.pk] for attempt in attempts],
                event=AttemptEvent.CONFIRM,
                job_event=event,
                at=context.at,
                release=release,
            )

        _apply_to_attempt_batch([each.attempt for each in members.values()], context, apply)


def _apply_to_attempt_batch(
    attempts: Sequence[Attempt],
    context: AttemptReconcileContext,
    apply: Callable[[Sequence[Attempt]], None],
) -> Sequence[Attempt]:
    """Apply to all at once, or one by one where that fails; return the attempts that it succeeded for."""
    if len(attempts) > 1:
        try:
            apply(attempts)
        except Exception:
            log.warning(
                "a batch failed, its attempts are processed one by one",
                extra={"attempts": len(attempts)},
                exc_info=True,
            )
        else:
            return attempts
    done = []
    for attempt in attempts:
        with context.isolate_attempt_errors(attempt):
            apply((attempt,))
            done.append(attempt)
    return done
