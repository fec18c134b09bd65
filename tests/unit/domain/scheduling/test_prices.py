"""Prices of shares: those of the best packing, so that no card is worth more than one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.scheduling.prices import MOST_SHARES, prices

ASKED = st.dictionaries(
    st.integers(10, 99).map(lambda tenths: tenths * 10), st.integers(1, 50), max_size=4
)


def fillings(shares: list[int]) -> list[tuple[int, ...]]:
    """Every way to put some of those shares on one card."""
    times = [range(1000 // share + 1) for share in shares]
    return [
        way
        for way in product(*times)
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
    assert prices(asked).of == pytest.approx(expected)


@settings(max_examples=50)
@given(asked=ASKED)
def test_no_way_to_fill_a_card_costs_more_than_it_and_together_they_pay_for_a_packing(
    asked: dict[int, int],
) -> None:
    """Duality: prices that no card exceeds bound every packing from below, and the best one is not far above."""
    found = prices(asked)
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


@settings(max_examples=50)
@given(asked=ASKED)
def test_the_rest_of_a_card_is_worth_the_dearest_shares_that_fit_there(
    asked: dict[int, int],
) -> None:
    found = prices(asked)
    shares = sorted(asked)
    costs = [found.of[share] for share in shares]
    assert (np.diff(found.worth) >= -1e-9).all()
    assert found.worth[1000] == 1
    for left in (0, 190, 470, 530, 999):
        fitting = [np.dot(way, costs) for way in fillings(shares) if np.dot(way, shares) <= left]
        assert found.worth[left] == pytest.approx(max(fitting, default=0), abs=1e-6)


def test_shares_that_hardly_anybody_asks_for_have_no_price() -> None:
    asked = {100 + each: 1.0 + each for each in range(MOST_SHARES + 3)}
    assert sorted(prices(asked).of) == list(range(103, 103 + MOST_SHARES))
