"""What makes fragments likely later: half-empty nodes, cards without cores, scarce chips that are spent."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.scheduling.node_table import NodeTable
from controlplane.domain.scheduling.scoring import (
    MOST_SHARES,
    PlacementCosts,
    compute_residual_capacity_values,
)
from controlplane.domain.scheduling.snapshots import (
    CardSnapshot,
    NodeSnapshot,
    ReplicaDemand,
    ReplicaShape,
    SchedulingSnapshot,
)
from controlplane.domain.scheduling.typical_requests import TypicalRequest
from tests.properties import examples

ONE_CARD = ReplicaShape(cards=1, share=1000, cpu=0, memory=0)


def node(
    uid: str, *, chip: str = "a", cards: int = 4, cpu: int = 40_000, allocated: int = 0
) -> NodeSnapshot:
    return NodeSnapshot(
        uid=uid,
        name=uid,
        cluster="c",
        cards=tuple(
            CardSnapshot(uid=f"{uid}/{index}", index=index, chip=chip, state=CardState.USABLE)
            for index in range(cards)
        ),
        capacity=Resources(cpu=Millicpu(cpu), memory=Bytes(GIB)),
        allocated=Resources(cpu=Millicpu(allocated)),
        owns_cpu=True,
    )


def costs(
    *nodes: NodeSnapshot, typical: tuple[TypicalRequest, ...] = (), cpu: int = 0
) -> list[float]:
    """Of one card on each of those nodes."""
    fleet = NodeTable(SchedulingSnapshot(nodes=nodes, claims=(), queues={}))
    demand = ReplicaDemand(ONE_CARD._replace(cpu=cpu), "")
    found: list[float] = PlacementCosts(fleet, typical).of(demand, np.arange(len(nodes))).tolist()
    return found


def test_the_fuller_node_costs_less() -> None:
    small, large = costs(node("small", cards=2, cpu=20_000), node("large", cards=4), cpu=10_000)
    assert small < large


def test_cards_that_would_be_left_without_cores_cost() -> None:
    balanced, starved = costs(node("balanced"), node("starved", allocated=28_000), cpu=10_000)
    assert balanced < starved


def test_cards_of_a_chip_that_others_depend_on_cost() -> None:
    picky = TypicalRequest(ONE_CARD, frozenset({"a"}), 1)
    easy = TypicalRequest(ONE_CARD, frozenset({"a", "b"}), 1)
    scarce, plenty = costs(node("one"), node("other", chip="b"), typical=(picky, easy))
    assert scarce > plenty


def test_where_all_accept_all_no_chip_is_scarce() -> None:
    easy = TypicalRequest(ONE_CARD, frozenset({"a", "b"}), 1)
    one, other = costs(node("one"), node("other", chip="b"), typical=(easy,))
    assert one == pytest.approx(other)


ASKED = st.dictionaries(
    st.integers(10, 99).map(lambda tenths: tenths * 10), st.integers(1, 50), max_size=4
)


def fillings(shares: list[int]) -> list[tuple[int, ...]]:
    """Every way to put some of those shares on one card."""
    replica_counts = [range(1000 // share + 1) for share in shares]
    return [
        way
        for way in product(*replica_counts)
        if sum(count * share for count, share in zip(way, shares, strict=True)) <= 1000
    ]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({500: 3}, {500: 0.5}),
        ({333: 1}, {333: 1 / 3}),
        ({810: 5, 160: 2}, {810: 1.0, 160: 0.0}),
        ({650: 1, 350: 9}, {650: 1 / 2, 350: 1 / 2}),
        ({}, {}),
    ],
)
def test_a_share_costs_what_it_adds_to_the_cards_that_are_needed(
    asked: dict[int, float], expected: dict[int, float]
) -> None:
    assert compute_residual_capacity_values(asked).of == pytest.approx(expected)


@settings(max_examples=examples(50))
@given(asked=ASKED)
def test_no_way_to_fill_a_card_costs_more_than_it_and_together_they_pay_for_a_packing(
    asked: dict[int, int],
) -> None:
    """Duality: prices that no card exceeds bound every packing from below, and the best one is not far above."""
    found = compute_residual_capacity_values(asked)
    shares = sorted(asked)
    costs = [found.of[share] for share in shares]
    ways = fillings(shares)
    assert all(np.dot(way, costs) <= 1 + 1e-6 for way in ways)
    assert all(cost >= 0 for cost in costs)
    bound = found.cards(asked)
    assert bound >= sum(share * count for share, count in asked.items()) / 1000 - 1e-6
    assert bound <= first_fit(asked) + 1e-6
    assert first_fit(asked) < 2 * bound + 1 if asked else bound == 0


def first_fit(asked: dict[int, int]) -> int:
    """Cards that are opened when the largest go first."""
    cards: list[int] = []
    for share in sorted(asked, reverse=True):
        for _ in range(asked[share]):
            place = next((each for each, left in enumerate(cards) if left >= share), len(cards))
            cards[place : place + 1] = [(cards[place] if place < len(cards) else 1000) - share]
    return len(cards)


@settings(max_examples=examples(50))
@given(asked=ASKED)
def test_the_rest_of_a_card_is_worth_the_dearest_shares_that_fit_there(
    asked: dict[int, int],
) -> None:
    found = compute_residual_capacity_values(asked)
    shares = sorted(asked)
    costs = [found.of[share] for share in shares]
    assert (np.diff(found.worth) >= -1e-9).all()
    assert found.worth[1000] == 1
    for left in (0, 190, 470, 530, 999):
        fitting = [np.dot(way, costs) for way in fillings(shares) if np.dot(way, shares) <= left]
        assert found.worth[left] == pytest.approx(max(fitting, default=0), abs=1e-6)


def test_shares_that_hardly_anybody_asks_for_have_no_price() -> None:
    asked = {100 + each: 1.0 + each for each in range(MOST_SHARES + 3)}
    assert sorted(compute_residual_capacity_values(asked).of) == list(range(103, 103 + MOST_SHARES))
