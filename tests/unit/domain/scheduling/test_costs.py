"""What makes fragments likely later: half-empty nodes, cards without cores, scarce chips that are spent."""

from __future__ import annotations

import numpy as np
import pytest

from controlplane.domain.accelerators import CardState
from controlplane.domain.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.scheduling.costs import Costs
from controlplane.domain.scheduling.fleet import Fleet
from controlplane.domain.scheduling.shapes import Demand, Shape, Typical
from controlplane.domain.scheduling.snapshots import CardView, NodeView, Snapshot

ONE_CARD = Shape(cards=1, share=1000, cpu=0, memory=0)


def node(
    uid: str, *, chip: str = "a", cards: int = 4, cpu: int = 40_000, promised: int = 0
) -> NodeView:
    return NodeView(
        uid=uid,
        name=uid,
        cluster="c",
        cards=tuple(
            CardView(uid=f"{uid}/{index}", index=index, chip=chip, state=CardState.USABLE)
            for index in range(cards)
        ),
        capacity=Resources(cpu=Millicpu(cpu), memory=Bytes(GIB)),
        promised=Resources(cpu=Millicpu(promised)),
        owns_cpu=True,
    )


def costs(*nodes: NodeView, typical: tuple[Typical, ...] = (), cpu: int = 0) -> list[float]:
    """Of one card on each of those nodes."""
    fleet = Fleet(Snapshot(nodes=nodes, claims=(), queues={}))
    demand = Demand(ONE_CARD._replace(cpu=cpu), "")
    found: list[float] = Costs(fleet, typical).of(demand, np.arange(len(nodes))).tolist()
    return found


def test_the_fuller_node_costs_less() -> None:
    small, large = costs(node("small", cards=2, cpu=20_000), node("large", cards=4), cpu=10_000)
    assert small < large


def test_cards_that_would_be_left_without_cores_cost() -> None:
    balanced, starved = costs(node("balanced"), node("starved", promised=28_000), cpu=10_000)
    assert balanced < starved


def test_cards_of_a_chip_that_others_depend_on_cost() -> None:
    picky = Typical(ONE_CARD, frozenset({"a"}), 1)
    easy = Typical(ONE_CARD, frozenset({"a", "b"}), 1)
    scarce, plenty = costs(node("one"), node("other", chip="b"), typical=(picky, easy))
    assert scarce > plenty


def test_where_all_accept_all_no_chip_is_scarce() -> None:
    easy = Typical(ONE_CARD, frozenset({"a", "b"}), 1)
    one, other = costs(node("one"), node("other", chip="b"), typical=(easy,))
    assert one == pytest.approx(other)
