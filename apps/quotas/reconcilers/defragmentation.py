"""Executes approved defragmentation plans, one relocation after the other.

Each step is one transaction under the controller's fencing token: its changes to claims, nominations and the rows
of the plan are committed together or not at all. A worker that dies between two steps leaves rows from which the
next run continues; while the controller does not run, reservations expire after some minutes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction

from apps.quotas.models import Defragmentation, DefragmentationMove
from apps.quotas.selectors import defragmentation as selectors
from apps.quotas.selectors.free_capacity import fleet_fragmentation
from apps.quotas.services import defragmentation
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.scheduling.defragmentation_runs import (
    ACTIVE,
    IN_MOTION,
    DefragmentationEvent,
    DefragmentationState,
    RelocationEvent,
    RelocationState,
    relocation_event,
)
from controlplane.persistence.leases import LeaderLease, hold_leader_lease

log = logging.getLogger(__name__)

LEASE = "quotas.defragmentation"
LEASE_TTL = timedelta(seconds=60)
#: Maximum steps per run; a relocation takes three, the rest are done by the next run.
MAX_STEPS = 100


def defragmentation_reconcile(*, at: datetime) -> int:
    """Execute all steps that are due; return their number."""
    waiting = Defragmentation.objects.filter(
        state=DefragmentationState.PROPOSED, expires_at__lte=at
    )
    if not (waiting.exists() or Defragmentation.objects.filter(state__in=ACTIVE).exists()):
        return 0
    with hold_leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        done = sum(_expire_unapproved_plan(row, at) for row in waiting)
        while done < MAX_STEPS and lease.renew(ttl=LEASE_TTL) and _apply_next_plan_step(lease, at):
            done += 1
    return done


def _expire_unapproved_plan(row: Defragmentation, at: datetime) -> bool:
    try:
        defragmentation.defragmentation_transition(
            row,
            DefragmentationEvent.EXPIRE,
            at=at,
            reason=Reason("defragmentation.approval.expired", "the plan was not approved in time"),
            ended_at=at,
        )
    except IllegalTransition:
        # It was approved or dismissed concurrently.
        return False
    return True


def _apply_next_plan_step(lease: LeaderLease, at: datetime) -> bool:
    """Execute one step; return whether one was due."""
    row = (
        Defragmentation.objects.filter(state__in=ACTIVE)
        .select_related("claim")
        .order_by("id")
        .first()
    )
    if row is None:
        return False
    step = _next_step(row, at)
    try:
        with transaction.atomic():
            if not lease.check():
                return False
            if step is None:
                defragmentation.defragmentation_cards_reserve(row=row, at=at)
                return False
            step()
    except defragmentation.RelocationNotPossible as stale:
        _fail_plan(lease, row, at, str(stale))
    except IllegalTransition as overtaken:
        # It was dismissed, or its claim changed state, concurrently: the next run handles that.
        log.info(
            "a step was overtaken",
            extra={"defragmentation_plan": row.uid, "reason": str(overtaken)},
        )
        return False
    return True


def _next_step(row: Defragmentation, at: datetime) -> Callable[[], None] | None:
    """The step that is due; None while waiting for something else."""
    if row.state == DefragmentationState.APPROVED:
        return lambda: defragmentation.defragmentation_begin(row=row, at=at)
    moves = list(selectors.relocations_of(row))
    current = next((one for one in moves if one.state in IN_MOTION), None)
    if current is not None:
        return _relocation_step(current, at)
    missed = next((one for one in moves if one.state == RelocationState.MISSED), None)
    if missed is not None:
        reason = Reason(
            "defragmentation.state.relocation_timeout",
            "relocation {relocation} did not finish in time; the remaining "
            "relocations were not started",
            relocation=missed.number,
        )
        return lambda: defragmentation.defragmentation_end(
            row=row, event=DefragmentationEvent.FAIL, at=at, reason=reason
        )
    planned = next((one for one in moves if one.state == RelocationState.PLANNED), None)
    if planned is None:
        return lambda: _finish_plan(row, moves, at)
    if row.stop_asked_at is not None:
        finished = sum(
            one.state in (RelocationState.LANDED, RelocationState.ENDED) for one in moves
        )
        reason = Reason(
            "defragmentation.state.stopped",
            "stopped by {user} after {finished} of {relocations} relocations",
            user=row.stop_asked_by,
            finished=finished,
            relocations=len(moves),
        )
        return lambda: defragmentation.defragmentation_end(
            row=row, event=DefragmentationEvent.DISMISS, at=at, reason=reason
        )
    planned.defragmentation = row
    return lambda: defragmentation.relocation_begin(step=planned, at=at)


def _relocation_step(current: DefragmentationMove, at: datetime) -> Callable[[], None] | None:
    event: RelocationEvent | None = relocation_event(
        RelocationState(current.state),
        defragmentation.relocation_observed_status(step=current, at=at),
    )
    return (
        None
        if event is None
        else lambda: defragmentation.relocation_advance(step=current, event=event, at=at)
    )


def _finish_plan(row: Defragmentation, moves: list[DefragmentationMove], at: datetime) -> None:
    reason = Reason(
        "defragmentation.state.finished", "relocations finished: {count}", count=len(moves)
    )
    defragmentation.defragmentation_end(
        row=row, event=DefragmentationEvent.FINISH, at=at, reason=reason
    )
    # Measured after the reservations are released.
    found = fleet_fragmentation()
    Defragmentation.objects.filter(pk=row.pk).update(
        whole_found=found.whole, fragments_found=found.fragments
    )


def _fail_plan(lease: LeaderLease, row: Defragmentation, at: datetime, reason: str) -> None:
    with transaction.atomic():
        if lease.check():
            defragmentation.defragmentation_end(
                row=row, event=DefragmentationEvent.FAIL, at=at, reason=reason
            )
