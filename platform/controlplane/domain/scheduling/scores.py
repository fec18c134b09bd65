"""How good each row is for a demand, kept up to date only where something changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.scheduling.costs import Costs
from controlplane.domain.scheduling.fleet import Fleet, Rows
from controlplane.domain.scheduling.fragmentation import Fragmentation
from controlplane.domain.scheduling.shapes import Demand, Typical

#: The score of a row that has no room.
NO_ROOM = np.iinfo(np.int64).max

#: Scores are whole numbers, so that equal ones are equal: so many of them are a thousandth of a card.
_FINE = 1000

#: Rows that are looked at one by one: arrays of so few take longer to make than to reckon with.
_FEW = 4

Scores = NDArray[np.int64]


@dataclass(slots=True)
class _Kept:
    scores: Scores
    #: How far of ``fleet.touched`` is in them.
    seen: int


class ScoreBoard:
    """Scores by demand; the smaller the better, ties go to the row that comes first."""

    def __init__(self, fleet: Fleet, typical: Sequence[Typical]) -> None:
        self._fleet = fleet
        self._fragmentation = Fragmentation(fleet, typical)
        self._costs = Costs(fleet, typical)
        self._kept: dict[Demand, _Kept] = {}

    def scores(self, demand: Demand) -> Scores:
        """[rows]: the fragments that one replica adds, and what it costs beside them.

        ``NO_ROOM`` where it does not fit. The array is the board's own: it changes with the next question.
        """
        kept = self._kept.get(demand)
        touched = self._fleet.touched
        if kept is None:
            rows = np.flatnonzero(self._fleet.eligible(demand)).astype(np.int64)
            kept = _Kept(np.full(len(self._fleet.rows), NO_ROOM, dtype=np.int64), len(touched))
            self._kept[demand] = kept
            self._score(demand, rows, kept.scores)
        elif kept.seen < len(touched):
            changed = set(touched[kept.seen :])
            kept.seen = len(touched)
            if len(changed) <= _FEW and not demand.shape.shares:
                for row in changed:
                    kept.scores[row] = self._score_on(demand, row)
            else:
                self._score(demand, np.array(sorted(changed), dtype=np.int64), kept.scores)
        return kept.scores

    def _score(self, demand: Demand, rows: Rows, scores: Scores) -> None:
        scores[rows] = NO_ROOM
        rows = rows[self._fleet.fits(demand, rows)]
        if len(rows):
            cost = self._fragmentation.gradient(demand, rows) + self._costs.of(demand, rows)
            scores[rows] = np.rint(cost * _FINE).astype(np.int64)

    def _score_on(self, demand: Demand, row: int) -> int:
        """The same for one row, to the last digit."""
        if not self._fleet.fits_on(demand, row):
            return NO_ROOM
        cost = self._fragmentation.gradient_on(demand, row) + self._costs.on(demand, row)
        return round(cost * _FINE)
