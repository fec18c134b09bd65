"""Room for one claim, made by moving others: who has to leave which node, and where they go instead.

Rows are cleared one by one, those first that the cheapest claims are on, until every replica has a seat. Who
leaves goes where the placer puts it. Where no place is free, it takes the place of another that has somewhere to
go and goes first: most rests of shared cards are too small for what has to leave, but not for what is smaller::

    wanted 550      card a  320 470 ··      card b  470 320 ··      card c  650 ···
                                └─────── 2 ────────────▶└─────── 1 ───────────▶
                    card a  320 550 ·       card b  470 470 ·       card c  650 320
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from controlplane.domain.claims import GangShape
from controlplane.domain.scheduling.fleet import Mask
from controlplane.domain.scheduling.moves import Mover
from controlplane.domain.scheduling.plans import ReplicaPlacement
from controlplane.domain.scheduling.shapes import Demand
from controlplane.domain.scheduling.snapshots import ClaimView, RunningView
from controlplane.domain.scheduling.topology import CLUSTER


class _Offer(NamedTuple):
    """Claims that would leave a row."""

    #: What that costs for each replica that could sit there then.
    price: float
    row: int
    leaving: tuple[RunningView, ...]
    #: Replicas of the newcomer for which there would be room.
    seats: int


class Rooms:
    """Makes room in the fleet of a mover, with its moves."""

    def __init__(self, mover: Mover, *, moves: int, tries: int) -> None:
        """:param moves: most moves that the mover may have made.
        :param tries: most places that are tried for each step.
        """
        self._mover = mover
        self._placer = mover.placer
        self._fleet = mover.placer.fleet
        self._moves = moves
        self._tries = tries
        #: Seats of the claim, each with the mark of the fleet before it.
        self._seated: list[tuple[int, ReplicaPlacement]] = []

    def make(
        self, claim: ClaimView, chip: str, *, worth: float
    ) -> tuple[ReplicaPlacement, ...] | None:
        """The seats of the claim, taken, after the cheapest moves that make room for it.

        None, and nothing is moved, where none are found that cost less than that is worth, in card-seconds.
        """
        mark = self._fleet.mark()
        best: tuple[float, Mask] | None = None
        for outside in self._outsides(claim):
            if self._seat(claim, chip, outside):
                cost = sum(move.cost for move in self._mover.moves)
                if cost < (worth if best is None else best[0]):
                    best = cost, outside
            self._undo(mark)
        if best is None:
            return None
        self._seat(claim, chip, best[1])
        return tuple(seat for _, seat in self._seated)

    def _undo(self, mark: int) -> None:
        self._mover.undo(mark)
        self._seated = [seat for seat in self._seated if seat[0] < mark]

    def _outsides(self, claim: ClaimView) -> Iterator[Mask]:
        """For each domain under which all of the claim may stand, the rows that are not in it."""
        widest = claim.within or CLUSTER
        for level in self._fleet.topology.between(widest, widest):
            for domain in range(min(len(level), self._tries)):
                yield ~level.rows(domain)

    def _seat(self, claim: ClaimView, chip: str, outside: Mask) -> bool:
        """A seat for each replica; where too few are free, whoever leaves most cheaply makes room."""
        for role in sorted(claim.shape.roles, key=lambda role: (-role.cards, -role.share)):
            one = replace(role, replicas=1, least=0)
            guest = replace(claim, shape=GangShape(roles=(one,)), within="", near="")
            seated = 0
            while seated < role.fewest and self._sits(guest, chip, outside):
                seated += 1
            if seated < role.fewest:
                demand = Demand.of(one, guest, chip)
                if not self._cleared(guest, demand, outside, role.fewest - seated):
                    return False
        return True

    def _sits(self, guest: ClaimView, chip: str, outside: Mask) -> bool:
        mark = self._fleet.mark()
        seats = self._placer.place(guest, chip, avoid=outside)
        self._seated += [(mark, seat) for seat in seats or ()]
        return seats is not None

    def _cleared(self, guest: ClaimView, demand: Demand, outside: Mask, missing: int) -> bool:
        """Whether rows could be cleared for the guests that stand; all of them sit then.

        Moves to free places first: they are fewer than where others have to give way.
        """
        offers = sorted(self._offers(demand, outside), key=lambda offer: (offer.price, offer.row))
        for give_way in (False, True):
            for taken in _enough(offers, missing):
                mark = self._fleet.mark()
                if self._left(taken, give_way=give_way) and all(
                    self._sits(guest, demand.chip, outside) for _ in range(missing)
                ):
                    return True
                self._undo(mark)
        return False

    def _left(self, offers: list[_Offer], *, give_way: bool) -> bool:
        """Whether everybody who would leave finds room outside of all the nodes that are cleared."""
        leaving = tuple({each.uid: each for offer in offers for each in offer.leaving}.values())
        cleared = self._fleet.mask([self._fleet.rows[offer.row].node.uid for offer in offers])
        allowed = self._moves - len(self._mover.moves)
        if not give_way:
            return len(leaving) <= allowed and self._mover.move(leaving, avoid=cleared)
        return (
            len(leaving) == 1
            and allowed > 1
            and self._mover.move_in_turn(leaving[0], avoid=cleared, tries=self._tries)
        )

    def _offers(self, demand: Demand, outside: Mask) -> list[_Offer]:
        """Rows that somebody would have to leave; those first that the cheapest claims are on."""
        rows = [
            (self._mover.cost(residents[:1]), row)
            for row in np.flatnonzero(self._fleet.eligible(demand) & ~outside).tolist()
            if (residents := self._mover.residents(row))
        ]
        offers: list[_Offer] = []
        for _, row in sorted(rows):
            leaving = self._mover.in_the_way(row, partial(self._seats, demand, row))
            if leaving:
                seats = self._mover.without(leaving, partial(self._seats, demand, row))
                price = self._mover.cost(leaving) / seats
                offers.append(_Offer(price, row, leaving, seats))
            if len(offers) >= self._tries:
                break
        return offers

    def _seats(self, demand: Demand, row: int) -> int:
        """Replicas that the row has room for now."""
        return int(self._fleet.times(demand)[row])


def _enough(offers: list[_Offer], missing: int) -> Iterator[list[_Offer]]:
    """From each offer on, as many as it takes to seat those that are missing."""
    for first in range(len(offers)):
        taken, seats = [], 0
        for offer in offers[first:]:
            taken.append(offer)
            seats += offer.seats
            if seats >= missing:
                yield taken
                break
        else:
            return
