"""Any queue tree: what is allowed breaks no cap, eats no reserve, and leaves no trace."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.quotas.tree import QueueTree
from tests.properties import examples
from tests.unit.domain.quotas.quota_trees import CHIP, OTHER, allows, queue


@st.composite
def trees(draw: st.DrawFn) -> dict[str, QueueSnapshot]:
    names = [f"q{number}" for number in range(draw(st.integers(1, 6)))]
    queues = {}
    for number, name in enumerate(names):
        reserved = draw(st.integers(0, 4))
        guaranteed = reserved + draw(st.integers(0, 6))
        cap = draw(st.none() | st.integers(guaranteed, 24))
        queues[name] = queue(
            name,
            parent=draw(st.none() | st.sampled_from(names[:number])) if number else None,
            reserved=reserved,
            guaranteed=guaranteed,
            cap=cap,
            used=draw(st.integers(0, 6)),
            weight=draw(st.sampled_from([0.5, 1.0, 2.0])),
            borrows=draw(st.booleans()),
            lends=draw(st.booleans()),
        )
    return queues


REQUESTS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([CHIP, OTHER]), st.integers(1, 6)), max_size=12
)


def answers(of: QueueTree, queues: Mapping[str, QueueSnapshot]) -> list[object]:
    return [
        (of.check(name, chip, cards), of.dominant_shares(name), of.may_reclaim(name, other, chip))
        for name in queues
        for other in queues
        for chip in (CHIP, OTHER)
        for cards in (1, 4, 9)
    ]


@given(trees(), REQUESTS)
@settings(max_examples=examples(100), deadline=None)
def test_what_is_charged_and_taken_back_leaves_no_trace(
    queues: dict[str, QueueSnapshot], requests: list[tuple[int, str, int]]
) -> None:
    names = list(queues)
    of = QueueTree(queues, free={CHIP: 12, OTHER: 4})
    before = answers(of, queues)
    changes = [of.charge, of.nominate, of.reserve, of.charge_evicted_cards]
    asked = [(names[index % len(names)], chip, cards) for index, chip, cards in requests]

    for turn, request in enumerate(asked):
        changes[turn % 4](*request)
    for turn, request in reversed(list(enumerate(asked))):
        name, chip, cards = request
        changes[turn % 4](name, chip, -cards)

    assert answers(of, queues) == before


@given(trees(), REQUESTS)
@settings(max_examples=examples(150), deadline=None)
def test_what_is_allowed_breaks_no_cap_and_eats_no_reserve(
    queues: dict[str, QueueSnapshot], requests: list[tuple[int, str, int]]
) -> None:
    """Counted anew from the definitions, without the tree's own bookkeeping."""
    names = list(queues)
    of = QueueTree(queues, free={CHIP: 12, OTHER: 4})
    used = {name: dict(view.used) for name, view in queues.items()}
    free = {CHIP: 12, OTHER: 4}
    for index, chip, cards in requests:
        name = names[index % len(names)]
        verdict = of.check(name, chip, cards)
        if verdict.shortage is not None or cards > free[chip]:
            continue
        of.charge(name, chip, cards)
        used[name][chip] = used[name].get(chip, 0) + cards
        free[chip] -= cards
        for above in above_and_itself(name, queues):
            cap = queues[above].entitlements.get(chip, ChipQuota()).cap
            assert cap is None or held(above, chip, queues, used) <= cap
            if above == verdict.covered_by:
                stated = queues[above].entitlements[chip].guaranteed
                assert held(above, chip, queues, used) <= stated
        top = above_and_itself(name, queues)[-1]
        if held(top, chip, queues, used) > never_lent(queues[top], chip):
            idle = [
                max(0, stated.reserved - held(top, chip, queues, used))
                for top, view in queues.items()
                if view.parent is None
                for stated in [view.entitlements.get(chip, ChipQuota())]
            ]
            assert free[chip] >= sum(idle)


def never_lent(top: QueueSnapshot, chip: str) -> int:
    """What the queue never lends; where the fleet is smaller than what all keep, the first ones get it."""
    stated = top.entitlements.get(chip, ChipQuota())
    return stated.reserved if top.lends else max(stated.reserved, stated.guaranteed)


def above_and_itself(name: str | None, queues: Mapping[str, QueueSnapshot]) -> list[str]:
    path = []
    while name is not None:
        path.append(name)
        name = queues[name].parent
    return path


def held(
    name: str, chip: str, queues: Mapping[str, QueueSnapshot], used: Mapping[str, Mapping[str, int]]
) -> int:
    return sum(
        used[other].get(chip, 0) for other in queues if name in above_and_itself(other, queues)
    )


@given(trees())
@settings(max_examples=examples(100), deadline=None)
def test_most_is_the_largest_number_that_is_allowed(queues: dict[str, QueueSnapshot]) -> None:
    of = QueueTree(queues, free={CHIP: 6})
    for name in queues:
        allowed = [cards for cards in range(13) if allows(of, name, cards)]
        assert of.max_admissible(name, CHIP, 12) == max(allowed, default=0)
        assert allowed == list(range(len(allowed)))
