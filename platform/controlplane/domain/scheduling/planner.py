"""The planner, which skips no-op cycles: nothing has changed since a plan that changed nothing.

Claims arrive all the time, most of them behind others with an equal request that are pending already. Where a
plan started and evicted nothing and evaluated all claims, and neither nodes, queues, running claims nor the
pending claims of then have changed since, the next plan would give the same reasons again; and for claims that
arrived behind one of their equivalence class, the reason of that one (``cycle``).

What depends on the time alone, such as the start of a reservation, may change by itself, and so may the typical
requests: such a plan is valid for a moment only.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import (
    PendingClaims,
    PendingGroup,
    SchedulerState,
    SchedulingPlan,
    SchedulingPolicy,
)
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot

#: How long a plan by which nothing moved stands.
NO_OP_PLAN_VALID_FOR = timedelta(seconds=1)


class _NoOpPlan(NamedTuple):
    """A plan that changed nothing, and its inputs; the snapshot includes claims that arrived since."""

    snapshot: SchedulingSnapshot
    policy: SchedulingPolicy
    at: datetime
    plan: SchedulingPlan


class Planner:
    """Plans one snapshot after another."""

    def __init__(self) -> None:
        self._last: _NoOpPlan | None = None
        #: Of the plan before.
        self.state = SchedulerState()

    def plan(
        self, snapshot: SchedulingSnapshot, policy: SchedulingPolicy, at: datetime
    ) -> SchedulingPlan:
        """Plan as ``cycle.plan`` does; after a no-op cycle, only the claims that arrived since the last plan.

        :raises ValueError: if a claim accepts no chip.
        """
        last = self._last
        if (
            last is not None
            and (pending := _reasons_for_new_claims(last, snapshot, policy, at)) is not None
        ):
            self._last = last._replace(snapshot=snapshot)
            return SchedulingPlan(pending=pending)
        decided = plan_cycle(snapshot, policy, at, self.state)
        deferred = self.state.deferred | decided.state.deferred
        self.state = decided.state
        moved = decided.placements or decided.revocations
        no_op = not (moved or deferred or decided.any_not_evaluated)
        self._last = _NoOpPlan(snapshot, policy, at, decided) if no_op else None
        return decided


def _reasons_for_new_claims(
    last: _NoOpPlan, snapshot: SchedulingSnapshot, policy: SchedulingPolicy, at: datetime
) -> PendingClaims | None:
    """Return why claims that arrived since are pending; None if a new plan is needed."""
    before = last.snapshot
    if policy != last.policy or not timedelta(0) <= at - last.at < NO_OP_PLAN_VALID_FOR:
        return None
    if (before.nodes, before.running) != (snapshot.nodes, snapshot.running):
        return None
    known = len(before.claims)
    if before.queues != snapshot.queues or before.claims != snapshot.claims[:known]:
        return None
    if len(snapshot.claims) == known:
        # No claim arrived: the plan was requested because time has passed.
        return None
    refused: list[PendingGroup] = []
    for claim in snapshot.claims[known:]:
        verdict = last.plan.class_reasons.get(claim.equivalence_class)
        if verdict is None or claim.position < verdict.behind:
            return None
        refused.append(PendingGroup(verdict.reason, (claim,)))
    return PendingClaims(refused)
