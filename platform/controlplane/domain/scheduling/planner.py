"""Plans of consecutive cycles; no-op cycles are skipped: nothing has changed since a plan that changed nothing.

Claims arrive all the time, most of them behind others with an equal request that are pending already. Where a
plan started and evicted nothing and evaluated all claims, and neither nodes, queues, running claims nor the
pending claims of then have changed since, the next plan would give the same reasons again; and for claims that
arrived behind one of their equivalence class, the reason of that one (``cycle``).

What depends on the time alone, such as the start of a reservation, may change by itself, and so may the typical
requests: such a plan is valid for a moment only.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import (
    PendingClaims,
    PendingGroup,
    SchedulerState,
    SchedulingPlan,
    SchedulingPolicy,
    UnchangedPlan,
)
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot

#: How long a plan by which nothing moved stands.
NO_OP_PLAN_VALID_FOR = timedelta(seconds=1)


def plan(
    snapshot: SchedulingSnapshot, policy: SchedulingPolicy, state: SchedulerState, at: datetime
) -> SchedulingPlan:
    """Plan as ``plan_cycle`` does; after a no-op cycle, only the claims that arrived since the last plan.

    :param state: of the plan before.
    :raises ValueError: if a claim accepts no chip.
    """
    last = state.no_op
    if (
        last is not None
        and (pending := _reasons_for_new_claims(last, snapshot, policy, at)) is not None
    ):
        return SchedulingPlan(
            pending=pending, state=replace(state, no_op=last._replace(snapshot=snapshot))
        )
    decided = plan_cycle(snapshot, policy, at, state)
    moved = decided.placements or decided.revocations
    if moved or state.deferred or decided.state.deferred or decided.any_not_evaluated:
        return decided
    no_op = UnchangedPlan(snapshot, policy, at, decided.class_reasons)
    return replace(decided, state=replace(decided.state, no_op=no_op))


def _reasons_for_new_claims(
    last: UnchangedPlan, snapshot: SchedulingSnapshot, policy: SchedulingPolicy, at: datetime
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
        verdict = last.class_reasons.get(claim.equivalence_class)
        if verdict is None or claim.position < verdict.behind:
            return None
        refused.append(PendingGroup(verdict.reason, (claim,)))
    return PendingClaims(refused)
