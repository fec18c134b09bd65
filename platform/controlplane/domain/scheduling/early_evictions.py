"""Starts that the next cycle would undo: found by planning that cycle, and withdrawn.

A cycle decides claim by claim, so what it places late may give a claim that it has refused before a right to what
it placed early: cards come free within the plan, the shares of queues change the order, reservations move. Rather
than repeat each of these rules, the next cycle is planned as if nothing arrived and nothing ended; what it would
evict does not start::

    plan ──▶ placements  a b c d ──▶ next cycle evicts b ──▶ a c d ──▶ evicts none: done

The next cycle decides last for a withdrawn claim (``SchedulerState.deferred``), and cards that are nominated for
it are released: those that would have evicted it get them first.

A plan evicts what its first pass evicts; withdrawing starts adds nothing to that. So where the first pass of the
next cycle evicts none of the starts, that cycle does not either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice

from controlplane.domain.scheduling.explanations import explain_reserved
from controlplane.domain.scheduling.pending_queues import queue_tree
from controlplane.domain.scheduling.plans import PendingClaims, PendingGroup, SchedulingPlan
from controlplane.domain.scheduling.runtime_estimates import expected_runtime_on_chip
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    SchedulingSnapshot,
    claims_by_class,
)

#: How often one cycle plans the next one. After that, whatever might be evicted in any order is withdrawn.
MOST_CHECKS = 3

#: A claim by queue and chip.
_ByQueue = Mapping[tuple[str, str], ClaimSnapshot]

#: The plan of the next cycle, from its snapshot and the plan before it.
NextPlan = Callable[[SchedulingSnapshot, SchedulingPlan], SchedulingPlan]


def withdraw_soon_evicted_starts(
    decided: SchedulingPlan, snapshot: SchedulingSnapshot, at: datetime, next_plan: NextPlan
) -> SchedulingPlan:
    """Return the plan without the starts that the next cycle would evict, if only this plan changes the snapshot.

    :param next_plan: plans a snapshot once, without this check.
    """
    for _ in range(MOST_CHECKS):
        after = _snapshot_after_commit(decided, snapshot, at)
        if not _starts_at_risk(decided, after):
            return decided
        started = {each.claim for each in decided.placements}
        owners = {
            each.claim: each.beneficiary
            for each in next_plan(after, decided).revocations
            if each.claim in started
        }
        if not owners:
            return decided
        decided = _plan_without_starts(decided, owners, snapshot)
    while at_risk := _starts_at_risk(decided, _snapshot_after_commit(decided, snapshot, at)):
        decided = _plan_without_starts(decided, at_risk, snapshot)
    return decided


def _snapshot_after_commit(
    decided: SchedulingPlan, snapshot: SchedulingSnapshot, at: datetime
) -> SchedulingSnapshot:
    """The snapshot once the plan is committed."""
    timeline = SnapshotSimulator(snapshot)
    for uid in decided.state.deferred:
        timeline.release_nominated(uid)
    for placement in decided.placements:
        runtime = expected_runtime_on_chip(timeline.claim(placement.claim), placement.chip)
        timeline.start(placement, at=at, ends_at=None if runtime is None else at + runtime)
    for revocation in decided.revocations:
        timeline.revoke(revocation)
    return timeline.snapshot()


def _starts_at_risk(decided: SchedulingPlan, after: SchedulingSnapshot) -> Mapping[str, str]:
    """Starts that some order of the next cycle might evict, each with a pending claim that may have the right.

    A sound bound: a queue that runs no more than it states as its guarantee loses nothing to other queues, and
    within a queue only more urgent claims preempt.

    :param after: the snapshot once the plan is committed.
    """
    started = {each.claim for each in decided.placements}
    if not started:
        return {}
    # Without the cards that are nominated for pending claims, which do not make their queue a borrower.
    tree = queue_tree(after, {})
    for view in after.running:
        if view.revoking:
            tree.charge_evicted_cards(view.queue, view.chip, view.amount)
    first, fewest = _first_pending_claims(after)
    reclaiming: dict[str, list[ClaimSnapshot]] = {}
    for (queue, chip), claim in fewest.items():
        if after.queues[queue].reclaims and tree.covered_by(
            queue, chip, claim.equivalence_class.fewest
        ):
            reclaiming.setdefault(chip, []).append(claim)
    found = {}
    for view in after.running:
        if view.uid not in started:
            continue
        urgent = first.get((view.queue, view.chip))
        if urgent and urgent.priority > view.priority and after.queues[view.queue].preempts:
            found[view.uid] = urgent.uid
        elif tree.is_borrowing(view.queue, view.chip):
            others = (each for each in reclaiming.get(view.chip, ()) if each.queue != view.queue)
            found.update((view.uid, each.uid) for each in islice(others, 1))
    return found


def _first_pending_claims(after: SchedulingSnapshot) -> tuple[_ByQueue, _ByQueue]:
    """Of the pending claims of each queue and chip, the first in order and one that needs the fewest cards."""
    first: dict[tuple[str, str], ClaimSnapshot] = {}
    fewest: dict[tuple[str, str], ClaimSnapshot] = {}
    for equivalence_class, claims in claims_by_class(after.claims).items():
        if equivalence_class.fewest:
            for chip in equivalence_class.chips:
                key = equivalence_class.queue, chip
                if claims[0].position < first.setdefault(key, claims[0]).position:
                    first[key] = claims[0]
                if (
                    equivalence_class.fewest
                    < fewest.setdefault(key, claims[0]).equivalence_class.fewest
                ):
                    fewest[key] = claims[0]
    return first, fewest


def _plan_without_starts(
    decided: SchedulingPlan, owners: Mapping[str, str], snapshot: SchedulingSnapshot
) -> SchedulingPlan:
    """The plan without the starts of those claims.

    :param owners: for each, the claim that would evict it.
    """
    claims = {claim.uid: claim for claim in snapshot.claims}
    refused = []
    for placement in decided.placements:
        if placement.claim in owners:
            claim = claims[placement.claim]
            queue = snapshot.queues[claims[owners[placement.claim]].queue].name
            reason = explain_reserved(claim, placement.chip, queue=queue)
            refused.append(PendingGroup(reason, (claim,)))
    return replace(
        decided,
        placements=tuple(each for each in decided.placements if each.claim not in owners),
        pending=PendingClaims((*decided.pending.groups, *refused)),
        state=replace(decided.state, deferred=decided.state.deferred | owners.keys()),
    )
