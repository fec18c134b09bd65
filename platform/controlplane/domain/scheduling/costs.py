"""What a placement costs beside the fragments that it makes at once: those that it makes likely later.

The gradient looks one step ahead and is the same on most nodes. Four more costs, in the same unit, tell these
apart:

- *worth*: what the rest of a card was worth to those who ask for shares, and is not any more (``prices.py``). For
  a share this decides; whole cards are worth the same everywhere.
- *fit*: what stays free beside it. Full nodes are filled up, and empty ones stay whole.
- *balance*: what stays free of the cards against what stays free of the CPU. Cards without cores are of use to
  nobody, cores without cards to few; a node should run out of both at the same time.
- *scarcity*: how much more is asked of the cards of this chip than of those of others. Who can go anywhere goes
  where those who cannot do not need to.

How much each weighs was measured on the public traces (``docs/benchmarks.md``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.claims import WHOLE_CARD
from controlplane.domain.scheduling.fleet import Fleet, Rows
from controlplane.domain.scheduling.prices import prices
from controlplane.domain.scheduling.shapes import Demand, Typical

#: For each card of which the rest loses all of its worth, in cards.
WORTH = 8.0
#: For each card that stays free, in cards.
FIT = 0.0075
#: For each card by which free cards and free CPU differ, in cards.
BALANCE = 0.05
#: For each card of a chip of which twice as much is asked as of cards on average, in cards.
SCARCITY = 2.0

Amounts = NDArray[np.float64]


class Costs:
    """Of placements on the rows of a fleet, in thousandths of a card."""

    def __init__(self, fleet: Fleet, typical: Sequence[Typical]) -> None:
        self._fleet = fleet
        cards = np.array([len(row.cards) for row in fleet.rows], dtype=np.float64)
        cpu = np.array([row.node.capacity.cpu for row in fleet.rows], dtype=np.float64)
        owned = np.array([row.node.owns_cpu for row in fleet.rows], dtype=np.bool_)
        counted = (cpu > 0) & owned
        #: [rows]: thousandths of a card for each thousandth of a core; 0 where CPU is not counted.
        self._by_cpu = np.where(counted, WHOLE_CARD * cards / np.where(counted, cpu, 1), 0)
        self._counted = counted
        self._pressure = _pressure(fleet, typical, cards)
        #: [thousandths that are left of a card]: what they are worth, in thousandths.
        self._worth = WHOLE_CARD * prices(_shares(typical)).worth

    def of(self, demand: Demand, rows: Rows) -> Amounts:
        """[rows]: of serving the demand on each of those, which has room for it."""
        fleet, shape = self._fleet, demand.shape
        left = fleet.states.lefts[fleet.state[rows]].sum(axis=1) - shape.amount
        cores = (fleet.cpu[rows] - shape.cpu) * self._by_cpu[rows]
        unbalanced = np.where(self._counted[rows], np.abs(cores - left), 0)
        costs: Amounts = (
            FIT * left + BALANCE * unbalanced + SCARCITY * shape.amount * self._pressure[rows]
        )
        if shape.shares:
            costs += WORTH * self._worth_lost(demand, rows)
        return costs

    def on(self, demand: Demand, row: int) -> float:
        """``of`` for one row, to the last digit, in a tenth of the time.

        :raises RuntimeError: for a share of a card.
        """
        fleet, shape = self._fleet, demand.shape
        if shape.shares:
            raise RuntimeError("what shares are worth is worked out for many rows at once")
        left = sum(fleet.states.left(int(fleet.state[row]))) - shape.amount
        unbalanced = 0.0
        if self._counted[row]:
            cores = (int(fleet.cpu[row]) - shape.cpu) * float(self._by_cpu[row])
            unbalanced = abs(cores - left)
        return (
            FIT * left + BALANCE * unbalanced + SCARCITY * shape.amount * float(self._pressure[row])
        )

    def _worth_lost(self, demand: Demand, rows: Rows) -> Amounts:
        """[rows]: thousandths by which the cards are worth less after it."""
        states = self._fleet.states
        before = self._fleet.state[rows]
        after = states.after(before, demand.shape)
        worth = self._worth
        lost: Amounts = (worth[states.lefts[before]] - worth[states.lefts[after]]).sum(axis=1)
        return lost


def _shares(typical: Sequence[Typical]) -> dict[int, float]:
    """How often each share of a card is asked for."""
    shares: dict[int, float] = {}
    for each in typical:
        if each.shape.shares:
            shares[each.shape.share] = shares.get(each.shape.share, 0) + each.weight
    return shares


def _pressure(fleet: Fleet, typical: Sequence[Typical], cards: Amounts) -> Amounts:
    """[rows]: what is asked of a card of the row's chip, against what is asked of a card on average, less 1.

    Each request is spread evenly over the cards that it accepts.
    """
    held: dict[str, float] = {}
    for row in fleet.rows:
        held[row.chip] = held.get(row.chip, 0) + len(row.cards)
    asked = dict.fromkeys(held, 0.0)
    for each in typical:
        accepted = [chip for chip in held if chip in each.chips]
        room = sum(held[chip] for chip in accepted)
        for chip in accepted:
            asked[chip] += each.weight * each.shape.amount / max(room, 1)
    of_row = np.array([asked[row.chip] for row in fleet.rows], dtype=np.float64)
    average = (of_row * cards).sum() / max(cards.sum(), 1)
    return of_row / average - 1 if average else np.zeros(len(fleet.rows))
