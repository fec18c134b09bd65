"""How near to the optimum it comes, with every assignment tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    NodeSnapshot,
)
from tests.properties import examples
from tests.unit.domain.scheduling.decisions import (
    decided,
)
from tests.unit.domain.scheduling.fleets import (
    claim,
    node,
    role,
    snapshot,
)


@cache
def optimum(free: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    """The most cards that claims of one replica can use together: every assignment is tried."""
    if not sizes:
        return 0
    first, rest = sizes[0], sizes[1:]
    best = optimum(free, rest)
    for place in range(len(free)):
        if free[place] >= first:
            left = tuple(sorted((*free[:place], free[place] - first, *free[place + 1 :])))
            best = max(best, first + optimum(left, rest))
    return best


def cards_placed(nodes: Sequence[NodeSnapshot], claims: Sequence[ClaimSnapshot]) -> int:
    found = decided(snapshot(*nodes, claims=claims), SchedulingPolicy(reservations=0))
    return sum(replica.count for each in found.placements for replica in each.replicas)


WORN = st.lists(st.integers(0, 8), min_size=1, max_size=3)


def worn(free: Sequence[int]) -> list[NodeSnapshot]:
    return [node(f"n{place}", busy=range(count, 8)) for place, count in enumerate(free)]


@settings(max_examples=examples(80))
@given(free=WORN, sizes=st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=6))
def test_largest_first_in_powers_of_two_is_the_optimum(free: list[int], sizes: list[int]) -> None:
    claims = [claim(f"c{place}", role(size), priority=size) for place, size in enumerate(sizes)]
    best = optimum(tuple(sorted(free)), tuple(sorted(sizes, reverse=True)))
    assert cards_placed(worn(free), claims) == best


@settings(max_examples=examples(80))
@given(free=WORN, sizes=st.lists(st.integers(1, 8), min_size=1, max_size=6))
def test_largest_first_in_any_size_uses_at_least_half_of_what_the_optimum_uses(
    free: list[int], sizes: list[int]
) -> None:
    claims = [claim(f"c{place}", role(size), priority=size) for place, size in enumerate(sizes)]
    best = optimum(tuple(sorted(free)), tuple(sorted(sizes, reverse=True)))
    assert 2 * cards_placed(worn(free), claims) >= best


@settings(max_examples=examples(80))
@given(free=WORN, sizes=st.lists(st.integers(1, 8), min_size=1, max_size=6))
def test_whatever_the_order_nothing_is_refused_that_would_fit(
    free: list[int], sizes: list[int]
) -> None:
    claims = [claim(f"c{place}", role(size), minute=place) for place, size in enumerate(sizes)]
    found = decided(snapshot(*worn(free), claims=claims), SchedulingPolicy(reservations=0))
    left = Counter({f"n{place}": count for place, count in enumerate(free)})
    for each in found.placements:
        for replica in each.replicas:
            left[replica.node] -= replica.count
    wanted = {each.uid: each.shape.cards for each in claims}
    for refusal in found.pending:
        assert wanted[refusal.claim] > max(left.values())
