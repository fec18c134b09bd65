"""Scores of rows for a demand: added fragments, and four further costs of a placement.

The fragmentation gradient looks one step ahead and is equal on most nodes. Four more costs, in the same unit,
separate these:

- *worth*: the residual value that the card loses for requests for shares. For a share this decides; whole cards
  have the same value everywhere.
- *fit*: what stays free next to it. Full nodes are filled up, and empty ones stay whole.
- *balance*: free cards against free CPU. Cards without cores are useless, cores without cards nearly so; a node
  should run out of both at the same time.
- *scarcity*: how much more is requested of this chip than of others. Requests that accept any chip go where those
  that do not are not needed.

The weights were measured on the public traces (``docs/benchmarks.md``).

**Residual value.** Of a card of which 470 thousandths are allocated, 530 are left; what that is worth depends
on the requests. Where half of all requests are for 470 it is worth half a card, as another of them fits and
fills it; where all others are for 650 it is worth nothing. So every share has a price, and the rest of a card
is worth what the dearest shares that fit there together cost::

    left       1000     530      470      210      60          shares 810, 650, 470, 320, each with its price
    worth         1     1/2      1/2        0       0          (a card may not be worth more than one)

The prices are those of the linear program that packs all shares into the fewest cards: a card costs one, a share
what it adds to the cards that are needed. (Gilmore and Gomory, "A Linear Programming Approach to the
Cutting-Stock Problem", Operations Research 9, 1961: a way to fill a card enters only if its shares cost more
than a card. That a request goes where it takes least of such worth is the bid-price control of revenue
management: Talluri and van Ryzin, Management Science 44, 1998.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.scheduling.fragmentation import FragmentationCalculator
from controlplane.domain.scheduling.node_table import NodeTable, Rows
from controlplane.domain.scheduling.snapshots import ReplicaDemand
from controlplane.domain.scheduling.typical_requests import TypicalRequest

#: Shares that get a price: the most frequent ones.
MOST_SHARES = 16
#: Ways to fill a card that are tried for each share, at the most; the prices are right long before.
_STEPS = 16
_SLIGHT = 1e-9

Amounts = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualCapacityValues:
    """Prices of shares, and values of what is left of a card; in cards."""

    #: By share, in thousandths of a card.
    of: Mapping[int, float]
    #: [thousandths of a card that are left]: what those are worth, 0 to 1.
    worth: Amounts

    def cards(self, asked: Mapping[int, float]) -> float:
        """Cards without which so many of each share cannot be packed, however it is done."""
        return sum(count * self.of.get(share, 0.0) for share, count in asked.items())


def compute_residual_capacity_values(asked: Mapping[int, float]) -> ResidualCapacityValues:
    """Return the prices of shares, in thousandths of a card, given how many of each are requested.

    A whole card is worth one even if no share is requested.
    """
    ranked = sorted(asked.items(), key=lambda each: (-each[1], each[0]))
    shares = sorted(share for share, count in ranked[:MOST_SHARES] if count > 0)
    counts = np.array([asked[share] for share in shares], dtype=np.float64)
    #: [shares, ways]: how many of each share every way to fill a card that is in use has.
    ways = np.diag([float(WHOLE_CARD // share) for share in shares])
    costs: Amounts = np.zeros(len(shares))
    for _ in range(_STEPS * len(shares)):
        costs = np.linalg.solve(ways.T, np.ones(len(shares))).astype(np.float64)
        way = _most_valuable_packing(shares, costs)
        if way @ costs <= 1 + _SLIGHT:
            break
        enters = np.linalg.solve(ways, way)
        used = np.linalg.solve(ways, counts)
        until = np.divide(used, enters, out=np.full(len(used), np.inf), where=enters > _SLIGHT)
        ways[:, until.argmin()] = way
    # Where it stopped before the end, a card would still be worth more than one.
    costs = np.maximum(costs, 0) / max(
        1.0, _maximum_share_prices(shares, np.maximum(costs, 0))[-1][-1]
    )
    worth = _maximum_share_prices(shares, costs)[-1]
    worth[WHOLE_CARD] = 1.0
    return ResidualCapacityValues(of=dict(zip(shares, costs.tolist(), strict=True)), worth=worth)


def _maximum_share_prices(shares: list[int], costs: Amounts) -> list[Amounts]:
    """[free thousandths]: the maximum total price of shares that fit: of none, of the first one, and so on."""
    stages = [np.zeros(WHOLE_CARD + 1)]
    for share, cost in zip(shares, costs, strict=True):
        before = stages[-1]
        best = before.copy()
        for times in range(1, WHOLE_CARD // share + 1):
            filled = times * share
            np.maximum(best[filled:], before[:-filled] + times * cost, out=best[filled:])
        stages.append(best)
    return stages


def _most_valuable_packing(shares: list[int], costs: Amounts) -> Amounts:
    """[shares]: how many of each fill a card so that they cost most."""
    stages = _maximum_share_prices(shares, costs)
    way = np.zeros(len(shares))
    left = WHOLE_CARD
    for place in reversed(range(len(shares))):
        before, with_it = stages[place : place + 2]
        while before[left] < with_it[left] - _SLIGHT:
            way[place] += 1
            left -= shares[place]
    return way


#: For each card of which the rest loses all of its worth, in cards.
WORTH = 8.0
#: For each card that stays free, in cards.
FIT = 0.0075
#: For each card by which free cards and free CPU differ, in cards.
BALANCE = 0.05
#: For each card of a chip that is requested twice as much as cards on average, in cards.
SCARCITY = 2.0


class PlacementCosts:
    """Costs of placements on the rows of a fleet, in thousandths of a card."""

    def __init__(self, fleet: NodeTable, typical: Sequence[TypicalRequest]) -> None:
        self._fleet = fleet
        cards = np.array([len(row.cards) for row in fleet.rows], dtype=np.float64)
        cpu = np.array([row.node.capacity.cpu for row in fleet.rows], dtype=np.float64)
        owned = np.array([row.node.owns_cpu for row in fleet.rows], dtype=np.bool_)
        counted = (cpu > 0) & owned
        #: [rows]: thousandths of a card for each thousandth of a core; 0 where CPU is not counted.
        self._by_cpu = np.where(counted, WHOLE_CARD * cards / np.where(counted, cpu, 1), 0)
        self._counted = counted
        self._pressure = _demand_pressure(fleet, typical, cards)
        #: [thousandths that are left of a card]: what they are worth, in thousandths.
        self._worth = (
            WHOLE_CARD * compute_residual_capacity_values(_share_frequencies(typical)).worth
        )

    def of(self, demand: ReplicaDemand, rows: Rows) -> Amounts:
        """[rows]: of serving the demand on each of those, which has room for it."""
        fleet, shape = self._fleet, demand.shape
        left = fleet.states.lefts[fleet.state[rows]].sum(axis=1) - shape.amount
        cores = (fleet.cpu[rows] - shape.cpu) * self._by_cpu[rows]
        unbalanced = np.where(self._counted[rows], np.abs(cores - left), 0)
        costs: Amounts = (
            FIT * left + BALANCE * unbalanced + SCARCITY * shape.amount * self._pressure[rows]
        )
        if shape.shares:
            costs += WORTH * self._value_lost(demand, rows)
        return costs

    def on(self, demand: ReplicaDemand, row: int) -> float:
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

    def _value_lost(self, demand: ReplicaDemand, rows: Rows) -> Amounts:
        """[rows]: thousandths by which the cards are worth less after it."""
        states = self._fleet.states
        before = self._fleet.state[rows]
        after = states.after(before, demand.shape)
        worth = self._worth
        lost: Amounts = (worth[states.lefts[before]] - worth[states.lefts[after]]).sum(axis=1)
        return lost


def _share_frequencies(typical: Sequence[TypicalRequest]) -> dict[int, float]:
    """How often each share of a card is requested."""
    shares: dict[int, float] = {}
    for each in typical:
        if each.shape.shares:
            shares[each.shape.share] = shares.get(each.shape.share, 0) + each.weight
    return shares


def _demand_pressure(
    fleet: NodeTable, typical: Sequence[TypicalRequest], cards: Amounts
) -> Amounts:
    """[rows]: demand for a card of the row's chip, relative to the demand for a card on average, less 1.

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


#: The score of a row without room.
NO_ROOM = np.iinfo(np.int64).max

#: Scores are whole numbers, so that equal ones are equal: so many of them are a thousandth of a card.
_FINE = 1000

#: Up to this many rows are scored one by one, as arrays of so few are slower.
_FEW = 4

Scores = NDArray[np.int64]


@dataclass(slots=True)
class _CachedScores:
    scores: Scores
    #: How far of ``fleet.touched`` is in them.
    seen: int


class PlacementScores:
    """Scores by demand, updated only for changed rows; the smaller the better, ties go to the first row."""

    def __init__(self, fleet: NodeTable, typical: Sequence[TypicalRequest]) -> None:
        self._fleet = fleet
        self._fragmentation = FragmentationCalculator(fleet, typical)
        self._costs = PlacementCosts(fleet, typical)
        self._cached: dict[ReplicaDemand, _CachedScores] = {}

    def scores(self, demand: ReplicaDemand) -> Scores:
        """[rows]: added fragments and further costs of one replica.

        ``NO_ROOM`` where it does not fit. The array belongs to this object and changes with the next call.
        """
        cached = self._cached.get(demand)
        changed_rows = self._fleet.changed_rows
        if cached is None:
            rows = np.flatnonzero(self._fleet.eligible(demand)).astype(np.int64)
            cached = _CachedScores(
                np.full(len(self._fleet.rows), NO_ROOM, dtype=np.int64), len(changed_rows)
            )
            self._cached[demand] = cached
            self._score_rows(demand, rows, cached.scores)
        elif cached.seen < len(changed_rows):
            changed = set(changed_rows[cached.seen :])
            cached.seen = len(changed_rows)
            if len(changed) <= _FEW and not demand.shape.shares:
                for row in changed:
                    cached.scores[row] = self._score_on(demand, row)
            else:
                self._score_rows(demand, np.array(sorted(changed), dtype=np.int64), cached.scores)
        return cached.scores

    def _score_rows(self, demand: ReplicaDemand, rows: Rows, scores: Scores) -> None:
        scores[rows] = NO_ROOM
        rows = rows[self._fleet.fits(demand, rows)]
        if len(rows):
            cost = self._fragmentation.gradient(demand, rows) + self._costs.of(demand, rows)
            scores[rows] = np.rint(cost * _FINE).astype(np.int64)

    def _score_on(self, demand: ReplicaDemand, row: int) -> int:
        """The same for one row, to the last digit."""
        if not self._fleet.fits_on(demand, row):
            return NO_ROOM
        cost = self._fragmentation.added_fragments_on_row(demand, row) + self._costs.on(demand, row)
        return round(cost * _FINE)
