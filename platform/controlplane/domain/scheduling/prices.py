"""What the rest of a card is worth to those who ask for shares.

Of a card of which 470 thousandths are taken, 530 are left; whether that is much depends on who asks. Where half of
all ask for 470 it is worth half a card, for another of them fits and fills it; where all others ask for 650 it is
worth nothing. So every share has a price, and the rest of a card is worth what the dearest shares that fit there
together cost::

    left       1000     530      470      210      60          shares 810, 650, 470, 320, each with its price
    worth         1     1/2      1/2        0       0          (a card may not be worth more than one)

The prices are those of the linear program that packs all shares into the fewest cards: a card costs one, a share
what it adds to the cards that are needed. (Gilmore and Gomory, "A Linear Programming Approach to the Cutting-Stock
Problem", Operations Research 9, 1961: a way to fill a card enters only if its shares cost more than a card. That a
request goes where it takes least of such worth is the bid-price control of revenue management: Talluri and van
Ryzin, Management Science 44, 1998.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.claims import WHOLE_CARD

#: Shares that get a price: the most frequent ones.
MOST_SHARES = 16
#: Ways to fill a card that are tried for each share, at the most; the prices are right long before.
_STEPS = 16
_SLIGHT = 1e-9

Amounts = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """In cards."""

    #: By share, in thousandths of a card.
    of: Mapping[int, float]
    #: [thousandths of a card that are left]: what those are worth, 0 to 1.
    worth: Amounts

    def cards(self, asked: Mapping[int, float]) -> float:
        """Cards without which so many of each share cannot be packed, however it is done."""
        return sum(count * self.of.get(share, 0.0) for share, count in asked.items())


def prices(asked: Mapping[int, float]) -> Prices:
    """The prices of shares, in thousandths of a card, of each of which so many are asked for.

    A whole card is worth one even if nobody asks for any share.
    """
    ranked = sorted(asked.items(), key=lambda each: (-each[1], each[0]))
    shares = sorted(share for share, count in ranked[:MOST_SHARES] if count > 0)
    counts = np.array([asked[share] for share in shares], dtype=np.float64)
    #: [shares, ways]: how many of each share every way to fill a card that is in use has.
    ways = np.diag([float(WHOLE_CARD // share) for share in shares])
    costs: Amounts = np.zeros(len(shares))
    for _ in range(_STEPS * len(shares)):
        costs = np.linalg.solve(ways.T, np.ones(len(shares))).astype(np.float64)
        way = _dearest(shares, costs)
        if way @ costs <= 1 + _SLIGHT:
            break
        enters = np.linalg.solve(ways, way)
        used = np.linalg.solve(ways, counts)
        until = np.divide(used, enters, out=np.full(len(used), np.inf), where=enters > _SLIGHT)
        ways[:, until.argmin()] = way
    # Where it stopped before the end, a card would still be worth more than one.
    costs = np.maximum(costs, 0) / max(1.0, _worths(shares, np.maximum(costs, 0))[-1][-1])
    worth = _worths(shares, costs)[-1]
    worth[WHOLE_CARD] = 1.0
    return Prices(of=dict(zip(shares, costs.tolist(), strict=True)), worth=worth)


def _worths(shares: list[int], costs: Amounts) -> list[Amounts]:
    """[thousandths that are left]: the most that shares which fit cost: of none, of the first one, and so on."""
    stages = [np.zeros(WHOLE_CARD + 1)]
    for share, cost in zip(shares, costs, strict=True):
        before = stages[-1]
        best = before.copy()
        for times in range(1, WHOLE_CARD // share + 1):
            filled = times * share
            np.maximum(best[filled:], before[:-filled] + times * cost, out=best[filled:])
        stages.append(best)
    return stages


def _dearest(shares: list[int], costs: Amounts) -> Amounts:
    """[shares]: how many of each fill a card so that they cost most."""
    stages = _worths(shares, costs)
    way = np.zeros(len(shares))
    left = WHOLE_CARD
    for place in reversed(range(len(shares))):
        before, with_it = stages[place : place + 2]
        while before[left] < with_it[left] - _SLIGHT:
            way[place] += 1
            left -= shares[place]
    return way
