"""Attempts that have to stop: those that lost their cards together are told, and ended, together.

A broken switch or a burst of broken cards hits the gangs of hundreds of cards at once, and none of their jobs is
placed again before its cards are given back. So a batch makes the same few statements as one attempt does.
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
from apps.jobs.reconcilers.scenes import Scene
from controlplane.domain.claims import ClaimState, ReleaseReason
from controlplane.domain.jobs import ATTEMPT, AttemptEvent, AttemptState, JobEvent
from controlplane.persistence.moves import Step, move_each

log = logging.getLogger(__name__)

GRACE = timedelta(seconds=30)
#: States in which it may be told to stop.
STOPPABLE = (AttemptState.ADMITTED, AttemptState.LAUNCHED, AttemptState.RUNNING)
#: Logs of those that stopped are kept one after the other. Whoever waited so many seconds for that is ended with
#: those before it: their leases do not last, and neither do the cards have to wait for the longest log.
_LONGEST_WAIT = 1.0

#: In what attempts have to be alike to end together: why, what becomes of their jobs, the columns written.
_Manner = tuple[ReleaseReason, JobEvent, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """One of which nothing runs any more, and what becomes of its job and its claim."""

    ending: services.Ending
    event: JobEvent
    release: ReleaseReason


def is_wanted(attempt: Attempt, scene: Scene) -> bool:
    """Whether somebody cancelled it, or its cards are taken back."""
    claim = scene.claims.get(attempt.claim_uid)
    revoked = claim is not None and claim.state == ClaimState.REVOKING
    return revoked or attempt.job.cancel_requested_at is not None


def begin(attempts: Sequence[Attempt], scene: Scene) -> None:
    """Tell each of them to stop."""
    for attempt in _at_once_or_one_by_one(attempts, scene, partial(_stop_each, scene=scene)):
        with scene.guarding(attempt):
            if not scene.waits(attempt):
                launches.stop(attempt, grace=_grace(attempt, scene))


def confirm(attempts: Sequence[Attempt], scene: Scene) -> None:
    """End those of which nothing runs any more; the others are told again."""
    over: list[_Ended] = []
    since = monotonic()

    def end_who_waited() -> None:
        nonlocal since
        if monotonic() - since > _LONGEST_WAIT:
            _end(over, scene)
            over.clear()
            since = monotonic()

    for attempt in attempts:
        with scene.guarding(attempt):
            if not scene.waits(attempt) and _has_stopped(attempt, scene):
                # Between two pieces of one log, too: the longest may take longer than the others' leases last.
                over.append(_ended(attempt, between=end_who_waited))
        end_who_waited()
    _end(over, scene)


def _stop_each(attempts: Sequence[Attempt], scene: Scene) -> None:
    steps = []
    for attempt in attempts:
        if attempt.job.cancel_requested_at is not None:
            stop_reason, reason = ReleaseReason.CANCELLED, cancelled_by(attempt)
        else:
            stop_reason = ReleaseReason(scene.claim(attempt).release_reason)
            reason = f"its cards are taken back ({stop_reason})"
        reason = f"stopping: {reason}"
        changes = {"message": reason, "stop_reason": stop_reason}
        steps.append(Step(row=attempt, reason=reason, changes=changes))
    move_each(steps, ATTEMPT, AttemptEvent.STOP, into=AttemptTransition, at=scene.at, leased=True)


def cancelled_by(attempt: Attempt) -> str:
    return f"cancelled by {attempt.job.cancel_requested_by}"


def _grace(attempt: Attempt, scene: Scene) -> timedelta:
    """What is left of the time that it was given to save and stop."""
    revoke_by: datetime | None = scene.claim(attempt).revoke_by
    if attempt.stop_reason == ReleaseReason.CANCELLED or revoke_by is None:
        return GRACE
    return max(timedelta(), revoke_by - scene.at)


def _has_stopped(attempt: Attempt, scene: Scene) -> bool:
    observed = scene.observed(attempt)
    if observed is None or observed.ended:
        return True
    # The order may have been lost with the worker that gave it, and the time that is left may have become less.
    launches.stop(attempt, grace=_grace(attempt, scene))
    return False


def _ended(attempt: Attempt, *, between: Callable[[], None]) -> _Ended:
    """:raises ValueError: if the row does not say why it stops; nobody else's end depends on it."""
    cancelled = attempt.job.cancel_requested_at is not None
    return _Ended(
        ending=services.Ending(
            attempt=attempt,
            reason=cancelled_by(attempt)
            if cancelled
            else f"waiting for cards again ({attempt.stop_reason})",
            changes=launches.archive_log(attempt, between=between),
        ),
        event=JobEvent.CANCEL if cancelled else JobEvent.REQUEUE,
        release=ReleaseReason(attempt.stop_reason),
    )


def _end(ended: Sequence[_Ended], scene: Scene) -> None:
    alike: dict[_Manner, dict[int, services.Ending]] = defaultdict(dict)
    for each in ended:
        ending = each.ending
        manner = each.release, each.event, frozenset(ending.changes)
        alike[manner][ending.attempt.pk] = ending
    for (release, event, _), those in alike.items():

        def act(
            attempts: Sequence[Attempt],
            those: Mapping[int, services.Ending] = those,
            release: ReleaseReason = release,
            event: JobEvent = event,
        ) -> None:
            services.attempts_end(
                endings=[those[attempt.pk] for attempt in attempts],
                event=AttemptEvent.CONFIRM,
                job_event=event,
                at=scene.at,
                release=release,
            )

        _at_once_or_one_by_one([each.attempt for each in those.values()], scene, act)


def _at_once_or_one_by_one(
    attempts: Sequence[Attempt], scene: Scene, act: Callable[[Sequence[Attempt]], None]
) -> Sequence[Attempt]:
    """Those for which it was done: all, or where that fails whoever can without the others."""
    if len(attempts) > 1:
        try:
            act(attempts)
        except Exception:
            told = {"attempts": len(attempts)}
            log.warning("attempts go on one by one", extra=told, exc_info=True)
        else:
            return attempts
    done = []
    for attempt in attempts:
        with scene.guarding(attempt):
            act((attempt,))
            done.append(attempt)
    return done
