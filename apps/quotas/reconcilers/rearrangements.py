"""The loop that carries approved moves out, one after the other.

Each step is one transaction under the loop's fencing token: what it changes in claims, in nominations and in the
rows of the plan comes true together or not at all. A worker that dies between two steps leaves rows from which
the next turn goes on; while nobody turns the loop, the kept cards are free again after some minutes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction

from apps.quotas.models import Rearrangement, RearrangementMove, RearrangementTransition
from apps.quotas.selectors import rearrangements as selectors
from apps.quotas.selectors.openings import openings_now
from apps.quotas.services import rearrangement_steps as steps
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.rearrangements import (
    ACTIVE,
    IN_MOTION,
    REARRANGEMENT,
    MoveEvent,
    MoveState,
    RearrangementEvent,
    RearrangementState,
    move_event,
)
from controlplane.persistence.leases import LoopLease, loop_lease
from controlplane.persistence.moves import move

log = logging.getLogger(__name__)

LEASE = "quotas.rearrangements"
LEASE_TTL = timedelta(seconds=60)
#: Steps of one turn: each move takes three, and what is left waits for the next.
MOST_STEPS = 100


def rearrangements_reconcile(*, at: datetime) -> int:
    """Do what can be done now; say how many steps that were."""
    waiting = Rearrangement.objects.filter(state=RearrangementState.PROPOSED, expires_at__lte=at)
    if not (waiting.exists() or Rearrangement.objects.filter(state__in=ACTIVE).exists()):
        return 0
    with loop_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        done = sum(_expired(row, at) for row in waiting)
        while done < MOST_STEPS and lease.renew(ttl=LEASE_TTL) and _one_step(lease, at):
            done += 1
    return done


def _expired(row: Rearrangement, at: datetime) -> bool:
    try:
        move(
            row,
            REARRANGEMENT,
            RearrangementEvent.EXPIRE,
            into=RearrangementTransition,
            at=at,
            reason="nobody approved it in time",
            state_reason="nobody approved it in time",
            ended_at=at,
        )
    except IllegalTransition:
        # Somebody decided in the same moment.
        return False
    return True


def _one_step(lease: LoopLease, at: datetime) -> bool:
    """Whether there was anything to do."""
    row = (
        Rearrangement.objects.filter(state__in=ACTIVE)
        .select_related("claim")
        .order_by("id")
        .first()
    )
    if row is None:
        return False
    step = _next(row, at)
    try:
        with transaction.atomic():
            if not lease.check():
                return False
            if step is None:
                steps.cards_keep(row=row, at=at)
                return False
            step()
    except steps.OutOfDate as stale:
        _fail(lease, row, at, str(stale))
    except IllegalTransition as overtaken:
        # It was dismissed, or its claim moved on, in the same moment: the next turn sees that.
        log.info("a step was overtaken", extra={"rearrangement": row.uid, "why": str(overtaken)})
        return False
    return True


def _next(row: Rearrangement, at: datetime) -> Callable[[], None] | None:
    """The step that is due; None where something has to happen elsewhere first."""
    if row.state == RearrangementState.APPROVED:
        return lambda: steps.rearrangement_begin(row=row, at=at)
    moves = list(selectors.moves_of(row))
    current = next((one for one in moves if one.state in IN_MOTION), None)
    if current is not None:
        return _landing(current, at)
    missed = next((one for one in moves if one.state == MoveState.MISSED), None)
    if missed is not None:
        reason = f"move {missed.number} did not land in time; what was left has not been begun"
        return lambda: steps.rearrangement_end(
            row=row, event=RearrangementEvent.FAIL, at=at, reason=reason
        )
    planned = next((one for one in moves if one.state == MoveState.PLANNED), None)
    if planned is None:
        return lambda: _finish(row, moves, at)
    if row.stop_asked_at is not None:
        made = sum(one.state in (MoveState.LANDED, MoveState.ENDED) for one in moves)
        reason = f"stopped by {row.stop_asked_by} after {made} of {len(moves)} moves"
        return lambda: steps.rearrangement_end(
            row=row, event=RearrangementEvent.DISMISS, at=at, reason=reason
        )
    planned.rearrangement = row
    return lambda: steps.move_begin(step=planned, at=at)


def _landing(current: RearrangementMove, at: datetime) -> Callable[[], None] | None:
    event: MoveEvent | None = move_event(
        MoveState(current.state), steps.move_sight(step=current, at=at)
    )
    return None if event is None else lambda: steps.move_on(step=current, event=event, at=at)


def _finish(row: Rearrangement, moves: list[RearrangementMove], at: datetime) -> None:
    reason = f"all {len(moves)} moves made"
    steps.rearrangement_end(row=row, event=RearrangementEvent.FINISH, at=at, reason=reason)
    # After that, for what was kept whole is free again.
    found = openings_now()
    Rearrangement.objects.filter(pk=row.pk).update(
        whole_found=found.whole, fragments_found=found.fragments
    )


def _fail(lease: LoopLease, row: Rearrangement, at: datetime, reason: str) -> None:
    with transaction.atomic():
        if lease.check():
            steps.rearrangement_end(row=row, event=RearrangementEvent.FAIL, at=at, reason=reason)
