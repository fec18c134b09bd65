"""What runs on the rows of a fleet, as arrays: in whose place somebody else would have room.

A thousand nodes bear thousands of claims, and each of them might make way. So all are asked at once, by what would
be free on their row without them. The answer is exact but for whole cards that hang together; whoever moves
somebody there asks the placer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from controlplane.domain.claims import WHOLE_CARD
from controlplane.domain.scheduling.fleet import Fleet, Mask
from controlplane.domain.scheduling.shapes import Demand, Shape
from controlplane.domain.scheduling.snapshots import RunningView


class _Resident(NamedTuple):
    running: RunningView
    demand: Demand
    row: int
    #: Of its first card in the row.
    position: int


class Residents:
    """Those of one replica on cards that the scheduler chose."""

    def __init__(self, fleet: Fleet, running: Iterable[RunningView]) -> None:
        """:param running: the order in which they are found."""
        self._fleet = fleet
        self._all = tuple(found for each in running if (found := _resident(fleet, each)))
        shapes = [each.demand.shape for each in self._all]
        self._row = np.array([each.row for each in self._all], dtype=np.int64)
        self._position = np.array([each.position for each in self._all], dtype=np.int64)
        self._share = np.array([shape.share for shape in shapes], dtype=np.int64)
        self._cards = np.array([shape.cards for shape in shapes], dtype=np.int64)
        self._cpu = np.array([shape.cpu for shape in shapes], dtype=np.int64)
        self._memory = np.array([shape.memory for shape in shapes], dtype=np.int64)

    def in_whose_place(
        self, demand: Demand, *, avoid: Mask, staying: Collection[str]
    ) -> Iterator[tuple[int, RunningView]]:
        """Those without whom their row has room for the demand, and who have room elsewhere; with that row.

        :param avoid: rows on which nobody of them is, and to which nobody of them goes.
        :param staying: uids of those who do not move.
        """
        somewhere: dict[Demand, Mask] = {}
        for number in np.flatnonzero(self._would_fit(demand) & ~avoid[self._row]).tolist():
            running, own, row, _ = self._all[number]
            if running.uid in staying:
                continue
            if own not in somewhere:
                every = np.arange(len(self._fleet.rows), dtype=np.int64)
                somewhere[own] = self._fleet.fits(own, every) & ~avoid
            if somewhere[own].sum() > somewhere[own][row]:
                yield row, running

    def _would_fit(self, demand: Demand) -> Mask:
        """[residents]: whether the demand would fit on their row if they were gone, and only then on that card."""
        fleet, shape, row = self._fleet, demand.shape, self._row
        left = fleet.states.lefts[fleet.state]
        own = left[row, self._position] + self._share
        if shape.shares:
            room = (left.max(axis=1)[row] >= shape.share) | (
                (own >= shape.share) & (self._share < shape.share)
            )
        else:
            given = np.where(self._share == WHOLE_CARD, self._cards, own == WHOLE_CARD)
            room = (left == WHOLE_CARD).sum(axis=1)[row] + given >= shape.cards
        fits: Mask = (
            room
            & fleet.eligible(demand)[row]
            & ((fleet.cpu[row] + self._cpu >= shape.cpu) | (shape.cpu == 0))
            & ((fleet.memory[row] + self._memory >= shape.memory) | (shape.memory == 0))
        )
        return fits


def demand_of(running: RunningView) -> Demand | None:
    """What its only replica asks of a node; None if it has more than one."""
    if len(running.replicas) != 1:
        return None
    roles = {role.name: role for role in running.shape.roles}
    role = roles[running.replicas[0].role]
    selector = tuple(sorted(running.selector.items()))
    chip = running.chip if role.cards else ""
    return Demand(Shape.of(role), chip, selector, running.tolerations)


def _resident(fleet: Fleet, running: RunningView) -> _Resident | None:
    demand = demand_of(running)
    if demand is None or not running.replicas[0].cards:
        return None
    seat = fleet.seat_of(running.replicas[0].cards[0])
    return None if seat is None else _Resident(running, demand, *seat)
