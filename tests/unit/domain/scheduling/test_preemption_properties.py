"""Who has to stop, whatever runs: each is needed, nobody within a guarantee, and nothing is left behind."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from controlplane.domain.quotas.queues import ChipQuota
from controlplane.domain.quotas.tree import QueueTree
from controlplane.domain.scheduling.node_table import NodeTable
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.plans import cards_of_replicas
from controlplane.domain.scheduling.preemption import Preemptor
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, SchedulingSnapshot
from tests.properties import examples
from tests.unit.domain.scheduling.decisions import (
    BATCH,
    decide,
    guaranteed,
)
from tests.unit.domain.scheduling.fleets import (
    AT,
    NPU,
    claim,
    node,
    role,
    running,
    snapshot,
)

PIECES = st.sampled_from([(4,), (2, 2), (1, 3), (3,), (1, 1, 2), (1, 1, 1, 1), (2, 1)])


@st.composite
def fleets(draw: st.DrawFn) -> SchedulingSnapshot:
    """Three nodes, nearly full, mostly of what others borrowed; one claim that research wants to run."""
    at_work = []
    for place in range(3):
        first = 0
        for number, size in enumerate(draw(PIECES)):
            at_work.append(
                running(
                    f"r{place}{number}",
                    {f"n{place}": range(first, first + size)},
                    queue=draw(st.sampled_from(["batch", "batch", "product", "research"])),
                    priority=draw(st.integers(0, 2)),
                    preemptible=draw(st.sampled_from([True, True, True, False])),
                    saved=timedelta(minutes=draw(st.integers(0, 90))),
                )
            )
            first += size
    wanted = claim(
        "owed",
        role(draw(st.integers(1, 4)), draw(st.integers(1, 2))),
        priority=draw(st.integers(0, 2)),
    )
    return snapshot(
        *(node(f"n{place}", 4) for place in range(3)),
        claims=[wanted],
        running=at_work,
        queues=(
            guaranteed("research", draw(st.integers(4, 12))),
            guaranteed("product", draw(st.integers(0, 6))),
            BATCH,
        ),
    )


def fits_without(seen: SchedulingSnapshot, waiting: ClaimSnapshot, gone: set[str]) -> bool:
    """By the definitions: the queue may have it, and the fleet has room for it."""
    fleet, tree = NodeTable(seen), tree_of(seen)
    for view in seen.running:
        if view.uid in gone:
            fleet.free(view)
            tree.charge(view.queue, view.chip, -cards_of_replicas(view.replicas))
    if tree.check(waiting.queue, NPU, waiting.shape.cards).shortage is not None:
        return False
    return PlacementFinder(fleet).place(waiting, NPU) is not None


def tree_of(seen: SchedulingSnapshot) -> QueueTree:
    free = sum(card.free for each in seen.nodes for card in each.cards)
    return QueueTree(seen.queues, free={NPU: free})


@given(fleets())
@settings(max_examples=examples(120))
def test_every_victim_is_needed_and_nobody_within_a_guarantee_is_one(
    seen: SchedulingSnapshot,
) -> None:
    (waiting,) = seen.claims
    decided = decide(seen)
    gone = {one.claim for one in decided.revocations}
    assume(gone)

    assert fits_without(seen, waiting, gone)
    for one in gone:
        assert not fits_without(seen, waiting, gone - {one})
    tree, views = tree_of(seen), {view.uid: view for view in seen.running}
    covered_by = tree.check(waiting.queue, NPU, waiting.shape.cards).covered_by
    for one in gone:
        view = views[one]
        assert view.preemptible
        if view.queue == waiting.queue:
            assert view.priority < waiting.priority
        else:
            assert covered_by == "research"
            held = seen.queues[view.queue].used[NPU]
            assert held > seen.queues[view.queue].entitlements.get(NPU, ChipQuota()).guaranteed


@given(fleets())
@settings(max_examples=examples(120))
def test_whoever_is_owed_cards_that_borrowers_hold_gets_them_in_one_round(
    seen: SchedulingSnapshot,
) -> None:
    """If it fits with every borrower of no right at all gone, it is placed or promised cards."""
    (waiting,) = seen.claims
    covered = tree_of(seen).check(waiting.queue, NPU, waiting.shape.cards).covered_by
    assume(covered == "research")
    lenders = {view.uid for view in seen.running if view.queue == "batch" and view.preemptible}
    assume(fits_without(seen, waiting, lenders))

    decided = decide(seen)

    assert decided.placements or decided.revocations


@given(fleets())
@settings(max_examples=examples(60))
def test_the_search_leaves_fleet_and_tree_as_they_were(seen: SchedulingSnapshot) -> None:
    (waiting,) = seen.claims
    fleet, tree = NodeTable(seen), tree_of(seen)
    preemptor = Preemptor(
        fleet=fleet, placer=PlacementFinder(fleet), tree=tree, running=seen.running, at=AT
    )
    before = [tree.check(name, NPU, 4) for name in seen.queues], fleet.state.tolist()

    preemptor.plan_preemption(waiting, NPU, avoid=None)

    assert ([tree.check(name, NPU, 4) for name in seen.queues], fleet.state.tolist()) == before
    assert fleet.mark() == 0
