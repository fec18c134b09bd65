"""Moves of running work: few, cheap, possible in their order, and only where they are worth it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.quotas.claims import GangShape
from controlplane.domain.scheduling.defragmentation import (
    DefragmentationGoal,
    DefragmentationLimits,
    DefragmentationPlan,
    EmptyNodesGoal,
    FitClaimGoal,
    ReduceFragmentsGoal,
    plan_defragmentation,
)
from controlplane.domain.scheduling.snapshots import (
    ReplicaPlacement,
    RunningClaim,
    SchedulingSnapshot,
)
from tests.properties import examples
from tests.unit.domain.scheduling.fleets import (
    AT,
    GPU,
    NPU,
    claim,
    hours,
    node,
    role,
    running,
    snapshot,
)


def planned(
    seen: SchedulingSnapshot, goal: DefragmentationGoal, **bounds: object
) -> DefragmentationPlan:
    return plan_defragmentation(seen, goal, at=AT, bounds=DefragmentationLimits(**bounds))  # type: ignore[arg-type]


def scattered(**how: object) -> SchedulingSnapshot:
    """Two nodes of eight; a job of two on the first, one of four on the second."""
    return snapshot(
        node("a"),
        node("b"),
        running=[
            running("small", {"a": (0, 1)}, **how),  # type: ignore[arg-type]
            running("large", {"b": (0, 1, 2, 3)}, **how),  # type: ignore[arg-type]
        ],
    )


def test_the_cheapest_move_empties_a_node() -> None:
    found = planned(scattered(), EmptyNodesGoal())
    (move,) = found.moves
    assert move.claim == "small"
    assert {replica.node for replica in move.target} == {"b"}
    assert (found.whole_before, found.whole_after) == (0, 1)
    assert found.reason == "nodes that would become entirely free: a"


def test_a_node_is_whole_if_nothing_is_held_of_any_of_its_chips() -> None:
    npus, gpus = node("m", 2), node("g", 2, chip=GPU)
    both = replace(
        npus,
        cards=(*npus.cards, *(replace(card, index=card.index + 2) for card in gpus.cards)),
    )
    stuck = replace(
        running("w", {"g": (0, 1)}, chip=GPU, saved=None),
        replicas=(
            ReplicaPlacement(role="trainer", index=0, node="m", cards=("g/0", "g/1"), count=2),
        ),
    )
    assert planned(snapshot(both), EmptyNodesGoal()).whole_before == 1
    found = planned(snapshot(both, running=[stuck]), EmptyNodesGoal())
    assert (found.whole_before, found.moves) == (0, ())


@pytest.mark.parametrize("saved", [None, timedelta(0)])
def test_a_node_is_not_whole_while_a_replica_without_cards_is_there(
    saved: timedelta | None,
) -> None:
    clerk = replace(
        running("z", {"n": ()}, saved=saved),
        shape=GangShape(roles=(role(0, memory=8),)),
    )
    # On the other node it would stand beside somebody who cannot move.
    seen = snapshot(
        node("n", 2), node("o", 2), running=[clerk, running("fixed", {"o": (0,)}, saved=None)]
    )
    found = planned(seen, EmptyNodesGoal())
    assert found.whole_before == 0
    assert found.whole_after == (0 if saved is None else 1)


def test_a_move_costs_what_is_done_again_and_the_restart_on_every_card() -> None:
    found = planned(scattered(), EmptyNodesGoal(), restart=timedelta(minutes=5))
    assert found.moves[0].lost == timedelta(minutes=10)
    assert found.cost == 2 * 15 * 60
    assert found.gain == 8 * 3600


@pytest.mark.parametrize(
    "how",
    [{"preemptible": False}, {"saved": None}],
    ids=["cannot be stopped", "never saved"],
)
def test_work_that_cannot_go_on_elsewhere_stays(how: dict[str, object]) -> None:
    found = planned(scattered(**how), EmptyNodesGoal())
    assert not found.moves
    assert found.reason == "no node can be freed at a cost below its value"


def test_a_move_that_costs_more_than_the_node_is_worth_is_not_made() -> None:
    old = scattered(since=hours(20), saved=hours(19))
    assert not planned(old, EmptyNodesGoal()).moves
    assert planned(old, EmptyNodesGoal(), worth=hours(6)).moves


def test_what_holds_a_card_unknown_to_the_scheduler_is_not_moved() -> None:
    seen = snapshot(
        node("a", busy=(7,)), node("b", busy=(7,)), running=[running("one", {"a": (0,)})]
    )
    assert not planned(seen, EmptyNodesGoal()).moves


def test_no_more_claims_move_than_the_bound_allows() -> None:
    seen = snapshot(
        node("a"),
        node("b"),
        running=[running(f"j{each}", {"a": (each,)}) for each in range(3)]
        + [running("rest", {"b": (0, 1, 2, 3, 4)}, preemptible=False)],
    )
    assert len(planned(seen, EmptyNodesGoal(), moves=3).moves) == 3
    assert not planned(seen, EmptyNodesGoal(), moves=2).moves


def test_a_node_that_is_empty_already_is_not_filled_to_empty_another() -> None:
    seen = snapshot(node("a"), node("b"), running=[running("one", {"a": (0,)})])
    assert not planned(seen, EmptyNodesGoal()).moves


def test_only_nodes_with_the_chip_that_was_named_are_emptied() -> None:
    seen = snapshot(
        node("a"),
        node("b"),
        node("g", chip=GPU),
        node("h", chip=GPU),
        running=[
            running("small", {"a": (0,)}),
            running("large", {"b": (0, 1, 2, 3)}),
            running("gpu", {"g": (0, 1)}, chip=GPU),
            running("more", {"h": (0, 1, 2)}, chip=GPU),
        ],
    )
    assert [move.claim for move in planned(seen, EmptyNodesGoal(chip=GPU)).moves] == ["gpu"]
    assert [move.claim for move in planned(seen, EmptyNodesGoal(chip=NPU)).moves] == ["small"]
    assert planned(seen, EmptyNodesGoal(nodes=2)).whole_after == 2


def test_one_claim_makes_room_where_one_is_enough() -> None:
    seen = snapshot(
        node("a"),
        node("b"),
        running=[
            running("one", {"a": (0,)}),
            running("two", {"a": (1, 2)}),
            running("three", {"b": (0, 1, 2)}),
        ],
    )
    wanted = claim("wanted", role(7))
    found = planned(seen, FitClaimGoal(claim=wanted, chip=NPU))
    assert [move.claim for move in found.moves] == ["two"]
    assert found.gain == 7 * 3600
    assert found.reason == "there would be enough free capacity for 1 × 7 cards"


def test_a_gang_gets_its_nodes_under_one_leaf() -> None:
    leaves = [node(f"n{each}", domains={"leaf": f"l{each // 2}"}) for each in range(4)]
    seen = snapshot(
        *leaves,
        running=[
            running("x", {"n1": (0, 1)}),
            running("y", {"n2": (0, 1, 2)}),
            running("z", {"n3": (0, 1, 2)}),
        ],
    )
    wanted = claim("wanted", role(8, 2), within="leaf")
    found = planned(seen, FitClaimGoal(claim=wanted, chip=NPU))
    assert [move.claim for move in found.moves] == ["x"]
    assert {replica.node for replica in found.moves[0].target} <= {"n2", "n3"}


def test_nothing_moves_for_a_claim_that_fits_already() -> None:
    found = planned(scattered(), FitClaimGoal(claim=claim("wanted", role(4)), chip=NPU))
    assert not found.moves
    assert found.reason == "the free capacity is already sufficient for the claim"


def test_no_moves_make_room_for_what_is_larger_than_every_node() -> None:
    found = planned(scattered(), FitClaimGoal(claim=claim("wanted", role(9)), chip=NPU))
    assert found.reason == "no relocations free the required capacity at a cost below its value"


@pytest.mark.parametrize(("within", "moved"), [("", ["pair"]), ("leaf", [])])
def test_a_claim_that_moves_stays_under_the_level_that_it_asked_for(
    within: str, moved: list[str]
) -> None:
    """One card is free under either of the other leaves: enough for a pair only if it may part."""
    seen = snapshot(
        node("n0", 2, domains={"leaf": "l0"}),
        node("n1", 2, domains={"leaf": "l0"}),
        node("n2", 2, busy=(0,), domains={"leaf": "l1"}),
        node("n3", 2, busy=(0,), domains={"leaf": "l2"}),
        running=[running("pair", {"n0": (0,), "n1": (0,)}, within=within)],
    )
    wanted = claim("wanted", role(2, 2))
    found = planned(seen, FitClaimGoal(claim=wanted, chip=NPU))
    assert [move.claim for move in found.moves] == moved


def test_fewer_fragments_means_fewer_afterwards() -> None:
    waiting = [claim(f"w{each}", role(8)) for each in range(4)]
    seen = scattered()
    seen = snapshot(*seen.nodes, running=seen.running, claims=waiting)
    found = planned(seen, ReduceFragmentsGoal())
    assert found.moves
    assert found.fragments_after < found.fragments_before
    assert found.gain == pytest.approx(
        (found.fragments_before - found.fragments_after) * 3600, rel=1e-9
    )
    assert found.cost < found.gain


@st.composite
def worn(draw: st.DrawFn) -> SchedulingSnapshot:
    """Nodes of four on which work of all sizes came and went."""
    nodes = [node(f"n{each}", 4, domains={"leaf": f"l{each // 2}"}) for each in range(5)]
    at_work: list[RunningClaim] = []
    for each in nodes:
        free = list(range(4))
        while draw(st.booleans()) and free:
            size = draw(st.integers(1, len(free)))
            taken, free = free[:size], free[size:]
            at_work.append(
                running(
                    f"j{len(at_work)}",
                    {each.uid: taken},
                    saved=draw(st.sampled_from([None, timedelta(0), timedelta(minutes=40)])),
                    preemptible=draw(st.sampled_from([True, True, False])),
                )
            )
    asked = draw(st.lists(st.sampled_from([1, 2, 4]), max_size=4))
    return snapshot(
        *nodes,
        running=at_work,
        claims=[claim(f"w{place}", role(size)) for place, size in enumerate(asked)],
    )


GOALS: st.SearchStrategy[DefragmentationGoal] = st.one_of(
    st.builds(EmptyNodesGoal, nodes=st.integers(1, 3)),
    st.just(ReduceFragmentsGoal()),
    st.builds(
        FitClaimGoal,
        claim=st.builds(
            lambda cards, replicas: claim("wanted", role(cards, replicas)),
            st.sampled_from([1, 2, 4]),
            st.integers(1, 3),
        ),
        chip=st.just(NPU),
    ),
)


@settings(max_examples=examples(150))
@given(seen=worn(), goal=GOALS)
def test_every_move_can_be_made_in_its_order(
    seen: SchedulingSnapshot, goal: DefragmentationGoal
) -> None:
    found = planned(seen, goal)
    holder = {card.uid: card.held_by for each in seen.nodes for card in each.cards}
    by_uid = {each.uid: each for each in seen.running}
    for move in found.moves:
        was = by_uid[move.claim]
        assert was.preemptible
        assert was.checkpointed_at is not None
        assert move.source == was.replicas
        for replica in move.source:
            holder.update(dict.fromkeys(replica.cards))
        for replica in move.target:
            assert all(holder[card] is None for card in replica.cards)
            holder.update(dict.fromkeys(replica.cards, move.claim))
        assert Counter(len(each.cards) for each in move.target) == Counter(
            len(each.cards) for each in move.source
        )
    assert len({move.claim for move in found.moves}) == len(found.moves) <= 16
    assert found.cost == sum(move.cost for move in found.moves)
    assert found.cost < found.gain or not found.moves
    if isinstance(goal, EmptyNodesGoal):
        assert found.whole_after - found.whole_before == len(found.reason.split(", ")) * bool(
            found.moves
        )
    if isinstance(goal, ReduceFragmentsGoal):
        assert found.fragments_after <= found.fragments_before
    assert found == planned(seen, goal)
