"""Fragments are counted as the definition counts them, and scores are kept right as the fleet changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.common.resources import Millicpu, Resources
from controlplane.domain.common.topology import choose_cards
from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.scheduling.fragmentation import FragmentationCalculator
from controlplane.domain.scheduling.node_table import NodeTable
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.scoring import NO_ROOM, PlacementCosts, PlacementScores
from controlplane.domain.scheduling.snapshots import ReplicaDemand, SchedulingSnapshot
from controlplane.domain.scheduling.typical_requests import TypicalRequest, typical_requests
from tests.properties import examples
from tests.unit.domain.scheduling.fleets import (
    GPU,
    NPU,
    RINGS,
    claim,
    node,
    role,
    running,
    snapshot,
)

ASKED = (
    claim("one", role(1, memory=8)),
    claim("pair", role(2, cpu=20)),
    claim("ring", role(4, 3)),
    claim("share", role(1, share=350)),
    claim("gpu", role(8), chips=(GPU,)),
    claim("either", role(2), chips=(NPU, GPU)),
)


def counted(fleet: NodeTable, typical: tuple[TypicalRequest, ...]) -> float:
    """By the definition, node by node: what each request cannot use, over all requests."""
    total = 0.0
    for number, row in enumerate(fleet.rows):
        left = fleet.states.left(int(fleet.state[number]))
        free = [
            card.index for card, rest in zip(row.cards, left, strict=True) if rest == WHOLE_CARD
        ]
        geometry = row.node.geometries.get(row.chip)
        for shape, chips, weight in typical:
            if shape.shares:
                fits = any(rest >= shape.share for rest in left)
            elif geometry:
                fits = choose_cards(free, shape.cards, geometry) is not None
            else:
                fits = len(free) >= shape.cards
            fits &= row.chip in chips
            fits &= bool(fleet.cpu[number] >= shape.cpu)
            fits &= not shape.memory or bool(fleet.memory[number] >= shape.memory)
            unusable = (rest for rest in left if not fits or rest < shape.share)
            total += weight * sum(unusable)
    return total / sum(each.weight for each in typical)


def worn() -> SchedulingSnapshot:
    return snapshot(
        node("a", geometry=RINGS, busy=(1, 6), memory=16),
        node("b", geometry=RINGS, owns_cpu=True, cpu=24),
        node("c", 4, busy=(0,)),
        node("g", chip=GPU),
        claims=ASKED,
    )


@settings(max_examples=examples(60))
@given(history=st.lists(st.integers(0, len(ASKED) - 1), max_size=12))
def test_the_total_is_what_the_definition_says_after_any_history(history: list[int]) -> None:
    seen = worn()
    typical = typical_requests(seen)
    fleet = NodeTable(seen)
    placer, fragmentation = PlacementFinder(fleet, typical), FragmentationCalculator(fleet, typical)
    for which in history:
        placer.place(ASKED[which], ASKED[which].chips[0])
        assert fragmentation.total() == pytest.approx(counted(fleet, typical))


@settings(max_examples=examples(60))
@given(which=st.integers(0, len(ASKED) - 1), history=st.lists(st.integers(0, 5), max_size=6))
def test_the_gradient_is_the_difference_that_a_placement_makes(
    which: int, history: list[int]
) -> None:
    seen = worn()
    typical = typical_requests(seen)
    fleet = NodeTable(seen)
    placer, fragmentation = PlacementFinder(fleet, typical), FragmentationCalculator(fleet, typical)
    for each in history:
        placer.place(ASKED[each], ASKED[each].chips[0])
    wanted = ASKED[which]
    demand = ReplicaDemand.of(wanted.shape.roles[0], wanted, wanted.chips[0])
    rows = np.arange(len(fleet.rows), dtype=np.int64)
    rows = rows[fleet.fits(demand, rows)]
    before = fragmentation.total()
    for row, added in zip(rows.tolist(), fragmentation.gradient(demand, rows), strict=True):
        mark = fleet.mark()
        fleet.take(row, demand, role="trainer", index=0)
        assert fragmentation.total() - before == pytest.approx(added, abs=1e-6)
        fleet.undo(mark)


@settings(max_examples=examples(100))
@given(which=st.integers(0, len(ASKED) - 1), history=st.lists(st.integers(0, 5), max_size=6))
def test_one_row_alone_is_judged_as_among_others_to_the_last_digit(
    which: int, history: list[int]
) -> None:
    seen = worn()
    typical = typical_requests(seen)
    fleet = NodeTable(seen)
    placer, costs = PlacementFinder(fleet, typical), PlacementCosts(fleet, typical)
    fragmentation = FragmentationCalculator(fleet, typical)
    for each in history:
        placer.place(ASKED[each], ASKED[each].chips[0])
    wanted = ASKED[which]
    demand = ReplicaDemand.of(wanted.shape.roles[0], wanted, wanted.chips[0])
    rows = np.arange(len(fleet.rows), dtype=np.int64)
    fits = fleet.fits(demand, rows)
    assert [fleet.fits_on(demand, row) for row in rows.tolist()] == fits.tolist()
    rows = rows[fits]
    alone = [fragmentation.added_fragments_on_row(demand, row) for row in rows.tolist()]
    assert alone == fragmentation.gradient(demand, rows).tolist()
    if not demand.shape.shares:
        assert [costs.on(demand, row) for row in rows.tolist()] == costs.of(demand, rows).tolist()


def test_a_row_alone_that_has_no_room_has_no_gradient_and_shares_no_cost_of_their_own() -> None:
    seen = worn()
    typical = typical_requests(seen)
    fleet = NodeTable(seen)
    many, share = claim("many", role(9)), claim("share", role(1, share=350))
    with pytest.raises(ValueError, match="has no free capacity for"):
        FragmentationCalculator(fleet, typical).added_fragments_on_row(
            ReplicaDemand.of(many.shape.roles[0], many, NPU), 0
        )
    with pytest.raises(RuntimeError, match="many rows at once"):
        PlacementCosts(fleet, typical).on(ReplicaDemand.of(share.shape.roles[0], share, NPU), 0)


@settings(max_examples=examples(100))
@given(
    history=st.lists(
        st.tuples(
            st.sampled_from(["place", "place", "undo", "mark", "ask", "free"]), st.integers(0, 5)
        ),
        max_size=30,
    )
)
def test_scores_that_are_kept_equal_scores_from_scratch(history: list[tuple[str, int]]) -> None:
    work = running("r", {"a": (2, 3)})
    seen = replace(worn(), running=(work,))
    typical = typical_requests(seen)
    fleet = NodeTable(snapshot(*seen.nodes, running=(work,)))
    placer = PlacementFinder(fleet, typical)
    board = PlacementScores(fleet, typical)
    demands = [
        ReplicaDemand.of(each.shape.roles[0], each, chip) for each in ASKED for chip in each.chips
    ]
    marks: list[int] = [0]
    freed = False
    for operation, which in history:
        if operation == "place":
            placer.place(ASKED[which], ASKED[which].chips[0])
        elif operation == "mark":
            marks.append(fleet.mark())
        elif operation == "undo":
            fleet.undo(min(marks.pop() if len(marks) > 1 else 0, fleet.mark()))
            freed = freed and fleet.mark() > 0
        elif operation == "free" and not freed:
            fleet.free(work)
            freed = True
        else:
            board.scores(demands[which])
    for demand in demands:
        fresh = PlacementScores(fleet, typical).scores(demand)
        assert board.scores(demand).tolist() == fresh.tolist()
        rows = np.arange(len(fleet.rows), dtype=np.int64)
        assert ((fresh != NO_ROOM) == fleet.fits(demand, rows)).all()


def test_a_claim_goes_where_it_breaks_nothing_that_others_ask_for() -> None:
    """Two nodes have one card over; only on one of them a pair stays whole."""
    seen = snapshot(
        node("a", 4, busy=(0, 1)),
        node("b", 4, busy=(0,)),
        claims=[claim(f"pair{each}", role(2)) for each in range(9)],
    )
    fleet = NodeTable(seen)
    taken = PlacementFinder(fleet, typical_requests(seen)).place(claim("one"), NPU)
    assert taken is not None
    assert taken[0].node == "b"


def test_cards_are_no_fragment_to_who_asks_for_no_cpu_where_too_much_of_it_is_promised() -> None:
    full = replace(node("a", 4, cpu=8, owns_cpu=True), allocated=Resources(cpu=Millicpu(9000)))
    seen = snapshot(full, claims=[claim("c", role(2))])
    assert FragmentationCalculator(NodeTable(seen), typical_requests(seen)).total() == 0


def test_equal_gradients_are_decided_by_the_best_fit() -> None:
    fleet = NodeTable(snapshot(node("a", 8), node("b", 8, busy=(0, 1, 2, 3))))
    taken = PlacementFinder(fleet).place(claim("one"), NPU)
    assert taken is not None
    assert taken[0].node == "b"


def test_typical_requests_are_the_most_frequent_and_weigh_as_much_as_they_are_asked_for() -> None:
    many = [claim(f"c{each}", role(1 if each < 90 else 1 + each)) for each in range(100)]
    typical = typical_requests(snapshot(claims=many, running=[running("r", {"a": (0, 1)})]))
    assert (typical[0].shape.cards, typical[0].weight) == (1, 90)
    assert {each.weight for each in typical[1:]} == {1}
    assert len(typical) < 12


def test_what_runs_is_typical_of_every_chip_that_it_accepts() -> None:
    """It took one of them by chance; those that ask for the same after it may take any."""
    at_work = replace(running("r", {"a": (0, 1)}, chip=NPU), chips=(GPU, NPU))
    assert [each.chips for each in typical_requests(snapshot(running=[at_work]))] == [{GPU, NPU}]


def test_cards_are_no_fragment_to_people_because_others_ask_for_another_chip() -> None:
    asked = [claim("gpu", role(8), chips=(GPU,)), claim("npu", role(2), chips=(NPU,))]
    seen = snapshot(node("g", 4, chip=GPU), node("n", 4, chip=NPU), claims=asked)
    fragments = FragmentationCalculator(NodeTable(seen), typical_requests(seen))
    assert list(fragments.fragments_for_accepting_requests() / WHOLE_CARD) == [4, 0]
    assert list(fragments.by_row() / WHOLE_CARD) == [4, 2]
    without_claims = FragmentationCalculator(
        NodeTable(seen), typical_requests(replace(seen, claims=tuple(asked[1:])))
    )
    assert list(without_claims.fragments_for_accepting_requests()) == [0, 0]
