"""What is free, what a change does, and that undo undoes it exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import GIB, Millicpu, Resources
from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.scheduling.node_table import NodeTable
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.snapshots import (
    CardSelection,
    CardSnapshot,
    ReplicaDemand,
    RunningClaim,
    SchedulingSnapshot,
)
from tests.properties import examples
from tests.unit.domain.scheduling.fleets import (
    AT,
    GPU,
    NPU,
    RINGS,
    claim,
    free_cards,
    node,
    role,
    running,
    snapshot,
)

ONE = ReplicaDemand.of(role(1), claim("c"), NPU)


def arrays(fleet: NodeTable) -> tuple[list[tuple[int, ...]], list[int], list[int]]:
    lefts = [fleet.states.left(int(state)) for state in fleet.state]
    return lefts, fleet.cpu.tolist(), fleet.memory.tolist()


def test_cards_that_are_held_faulty_or_nominated_are_not_free() -> None:
    view = node("a", 5, busy=(0,), faulty=(1,))
    cards = tuple(
        replace(card, nominated_for="heir") if card.index == 2 else card for card in view.cards
    )
    fleet = NodeTable(snapshot(replace(view, cards=cards)))
    assert free_cards(fleet, NPU) == 2
    fleet.release_nominated_cards("heir")
    assert free_cards(fleet, NPU) == 3
    fleet.undo(0)
    assert free_cards(fleet, NPU) == 2


def test_a_closed_node_has_nothing_to_give() -> None:
    fleet = NodeTable(snapshot(node("a", schedulable=False), node("b", 2)))
    assert free_cards(fleet, NPU) == 2
    assert fleet.replica_counts(ONE).tolist() == [0, 2]


def test_a_node_with_two_chips_has_two_rows_and_one_memory() -> None:
    view = node("a", 2, memory=8)
    gpus = tuple(
        CardSnapshot(uid=f"g{each}", index=each, chip=GPU, state=CardState.USABLE)
        for each in range(2)
    )
    fleet = NodeTable(snapshot(replace(view, cards=(*view.cards, *gpus))))
    assert [row.chip for row in fleet.rows] == [NPU, GPU]
    demand = ReplicaDemand.of(role(1, memory=3), claim("c"), NPU)
    fleet.take(0, demand, role="trainer", index=0)
    assert fleet.memory.tolist() == [5 * GIB, 5 * GIB]
    assert free_cards(fleet, GPU) == 2


@pytest.mark.parametrize(
    ("wanted", "bears"),
    [
        (claim("c"), [True, True, False]),
        (claim("c", selector={"pool": "fast"}), [False, True, False]),
        (claim("c", selector={"pool": "slow"}), [False, False, False]),
    ],
)
def test_labels_and_chips_say_which_rows_bear_a_claim(wanted: object, bears: list[bool]) -> None:
    fleet = NodeTable(
        snapshot(
            node("a"),
            node("b", labels={"pool": "fast"}),
            node("g", chip=GPU),
        )
    )
    demand = ReplicaDemand.of(role(1), wanted, NPU)  # type: ignore[arg-type]
    assert fleet.eligible(demand).tolist() == bears


def test_cpu_refuses_only_where_a_node_owns_it() -> None:
    fleet = NodeTable(snapshot(node("a", cpu=1), node("b", cpu=1, owns_cpu=True)))
    greedy = ReplicaDemand.of(role(1, cpu=4), claim("c"), NPU)
    assert fleet.fits(greedy, np.array([0, 1], dtype=np.int64)).tolist() == [True, False]


def test_memory_refuses_everywhere() -> None:
    fleet = NodeTable(snapshot(node("a", memory=4)))
    greedy = ReplicaDemand.of(role(1, memory=3), claim("c"), NPU)
    assert fleet.replica_counts(greedy).tolist() == [1]


def test_a_row_without_room_gives_nothing() -> None:
    fleet = NodeTable(snapshot(node("a", 1, busy=(0,))))
    with pytest.raises(ValueError, match="a has no free capacity for"):
        fleet.take(0, ONE, role="trainer", index=0)


def test_what_ended_gives_its_cards_back_but_a_faulty_card_stays_out() -> None:
    work = running("r", {"a": (0, 1)})
    fleet = NodeTable(snapshot(node("a", 2, faulty=(1,)), running=[work]))
    assert free_cards(fleet, NPU) == 0
    fleet.free(work)
    assert free_cards(fleet, NPU) == 1


def test_where_the_node_chooses_any_of_its_held_cards_stand_for_those_given_back() -> None:
    work = running("r", {"a": (2, 3)})
    seen = snapshot(node("a", 4, binding=CardSelection.NODE), running=[work])
    unnamed = replace(
        work, replicas=tuple(replace(each, cards=(), count=2) for each in work.replicas)
    )
    fleet = NodeTable(seen)
    fleet.free(unnamed)
    assert free_cards(fleet, NPU) == 4
    taken = PlacementFinder(fleet).place(claim("c", role(3)), NPU)
    assert taken is not None
    assert (taken[0].cards, taken[0].count) == ((), 3)


def test_where_the_node_chooses_a_share_is_given_back_to_a_card_that_is_shared() -> None:
    held = running("whole", {"a": (0,)})
    share = running("share", {"a": (1,)}, share=500)
    unnamed = replace(
        share, replicas=tuple(replace(each, cards=(), count=1) for each in share.replicas)
    )
    bare = node("a", 2, busy=(0,), binding=CardSelection.NODE)
    shared = replace(bare, cards=(bare.cards[0], replace(bare.cards[1], shared=500)))
    fleet = NodeTable(
        SchedulingSnapshot(nodes=(shared,), claims=(), queues={}, running=(held, unnamed))
    )
    assert free_cards(fleet, NPU) == 0
    fleet.free(unnamed)
    assert arrays(fleet)[0] == [(0, WHOLE_CARD)]


@pytest.mark.parametrize(
    ("binding", "state", "free"),
    [
        (CardSelection.CARD, CardState.ISOLATED, 3),
        (CardSelection.NODE, CardState.ISOLATED, 0),
        (CardSelection.NODE, CardState.NO_NEW_WORK, 0),
        (CardSelection.NODE, CardState.UNKNOWN, 3),
    ],
)
def test_a_node_that_chooses_gives_nothing_while_it_could_give_a_card_that_is_out_of_use(
    binding: CardSelection, state: CardState, free: int
) -> None:
    bare = node("a", 4, binding=binding)
    ill = replace(bare, cards=(replace(bare.cards[0], state=state), *bare.cards[1:]))
    fleet = NodeTable(snapshot(ill))
    assert free_cards(fleet, NPU) == free
    assert (PlacementFinder(fleet).place(claim("c", role(1)), NPU) is not None) == bool(free)


@pytest.mark.parametrize("replicas", [1, 2])
def test_cpu_that_is_promised_twice_refuses_only_who_asks_for_some(replicas: int) -> None:
    allocated = Resources(cpu=Millicpu(9000))
    full = replace(node("a", cpu=8, owns_cpu=True), allocated=allocated)
    assert PlacementFinder(NodeTable(snapshot(full))).place(claim("c", role(2, replicas)), NPU)
    assert not PlacementFinder(NodeTable(snapshot(full))).place(
        claim("c", role(2, replicas, cpu=1)), NPU
    )


def test_a_share_leaves_the_rest_of_its_card_to_others() -> None:
    fleet = NodeTable(snapshot(node("a", 1)))
    placer = PlacementFinder(fleet)
    share = role(1, share=400)
    assert placer.place(claim("x", share), NPU)
    assert placer.place(claim("y", share), NPU)
    assert placer.place(claim("z", share), NPU) is None
    assert arrays(fleet)[0] == [(200,)]


# -- The journal --


@st.composite
def operations(draw: st.DrawFn) -> list[tuple[str, int]]:
    return draw(
        st.lists(
            st.tuples(
                st.sampled_from(["take", "take", "free", "mark", "undo", "open"]),
                st.integers(0, 5),
            ),
            max_size=40,
        )
    )


ASKED = (
    claim("one", role(1, memory=1)),
    claim("pair", role(2, cpu=2)),
    claim("ring", role(4)),
    claim("share", role(1, share=350, memory=2)),
    claim("gang", role(2, 2)),
    claim("lone", role(0, cpu=1, memory=1)),
)


def worked() -> tuple[NodeTable, PlacementFinder]:
    views = [node(f"n{each}", owns_cpu=each == 1, geometry=RINGS) for each in range(2)]
    cards = tuple(
        replace(card, nominated_for="heir") if card.index < 2 else card for card in views[0].cards
    )
    plain = node("n2", 4, binding=CardSelection.NODE)
    fleet = NodeTable(snapshot(replace(views[0], cards=cards), views[1], plain))
    return fleet, PlacementFinder(fleet)


@settings(max_examples=examples(200))
@given(history=operations())
def test_after_undo_everything_is_as_it_was(history: list[tuple[str, int]]) -> None:
    fleet, placer = worked()
    marks: list[tuple[int, object, tuple[RunningClaim, ...]]] = [(0, arrays(fleet), ())]
    held: list[RunningClaim] = []
    for operation, which in history:
        if operation == "take":
            wanted = ASKED[which]
            taken = placer.place(wanted, NPU)
            if taken:
                held.append(
                    RunningClaim(
                        uid=f"r{len(held)}",
                        queue="research",
                        shape=wanted.shape,
                        chip=NPU,
                        priority=0,
                        admitted_at=AT,
                        replicas=taken,
                    )
                )
        elif operation == "free" and held:
            fleet.free(held.pop(which % len(held)))
        elif operation == "open":
            fleet.release_nominated_cards("heir")
        elif operation == "mark":
            marks.append((fleet.mark(), arrays(fleet), tuple(held)))
        elif operation == "undo":
            mark, then, holders = marks.pop() if len(marks) > 1 else marks[0]
            fleet.undo(mark)
            held = list(holders)
            assert arrays(fleet) == then
    fleet.undo(0)
    assert arrays(fleet) == marks[0][1]


@settings(max_examples=examples(100))
@given(order=st.permutations(range(len(ASKED))), gone=st.permutations(range(len(ASKED))))
def test_what_was_taken_and_given_back_in_any_order_is_free_again(
    order: list[int], gone: list[int]
) -> None:
    fleet = NodeTable(snapshot(*(node(f"n{each}", geometry=RINGS) for each in range(2))))
    placer = PlacementFinder(fleet)
    before = arrays(fleet)
    held = {}
    for which in order:
        taken = placer.place(ASKED[which], NPU)
        if taken is not None:
            held[which] = RunningClaim(
                uid=str(which),
                queue="research",
                shape=ASKED[which].shape,
                chip=NPU,
                priority=0,
                admitted_at=AT,
                replicas=taken,
            )
    for which in gone:
        if which in held:
            fleet.free(held[which])
    assert arrays(fleet) == before


def test_a_fleet_knows_whether_it_has_only_shrunk() -> None:
    fleet, placer = worked()
    work = running("r", {"n1": (0,)})
    moment = fleet.moment()
    placer.place(ASKED[0], NPU)
    assert fleet.has_only_allocated_since(moment)
    later = fleet.moment()
    fleet.undo(0)
    assert fleet.has_only_allocated_since(moment)
    assert not fleet.has_only_allocated_since(later)
    fleet.free(work)
    assert not fleet.has_only_allocated_since(moment)


def test_masks_name_every_row_of_a_node() -> None:
    fleet = NodeTable(snapshot(node("a"), node("b", 0), node("c")))
    mask: NDArray[np.bool_] = fleet.mask(["b", "c"])
    assert mask.tolist() == [False, True, True]
