"""Where a gang goes: all of it or nothing, in the smallest piece of the network that holds it.

Levels are tried from the node outwards. Of the domains of a level that have room for every role, the one that
is left fullest is taken, so that the empty ones stay whole for larger gangs; inside it each replica goes where it
adds the fewest fragments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.scheduling.fleet import Fleet, Mask, Moment
from controlplane.domain.scheduling.plans import ReplicaPlacement
from controlplane.domain.scheduling.scores import NO_ROOM, ScoreBoard
from controlplane.domain.scheduling.searches import AskedRole, Search, search_of
from controlplane.domain.scheduling.shapes import Demand, Typical
from controlplane.domain.scheduling.snapshots import ClaimView
from controlplane.domain.scheduling.topology import CLUSTER, NODE, Level

#: A row never counts for more; replicas without cards have room everywhere.
_MOST_REPLICAS = 4096

#: Domains of a level that are tried before the next level is.
MOST_DOMAINS = 16


class _MostLeft(NamedTuple):
    """On one row at that moment: whole cards, and thousandths of a card."""

    moment: Moment
    cards: int
    share: int


class _Seat(NamedTuple):
    """Room that was taken for one replica."""

    row: int
    demand: Demand
    placement: ReplicaPlacement
    #: What the board gave the row.
    score: int


class _Option(NamedTuple):
    """Room for a gang on one chip; the smallest is the best."""

    #: Replicas short of what the gang wants.
    missing: int
    #: Number of the smallest level of the network of which one domain holds it all.
    level: int
    #: Sum over the replicas.
    score: int
    #: Of the first replica: between equals the first row wins, whichever chip was looked at first.
    row: int
    chip: str
    seats: tuple[_Seat, ...]


class Placer:
    """Finds room in a fleet, and takes it."""

    def __init__(self, fleet: Fleet, typical: Sequence[Typical] = ()) -> None:
        """:param typical: what fragmentation is measured against; without it, the best fit alone decides."""
        self.fleet = fleet
        self._board = ScoreBoard(fleet, typical)
        self._failed: dict[tuple[Search, bytes | None], Moment] = {}
        #: The most that one row had left when a search failed, by chip and by how much was given back before.
        self._left: dict[tuple[str, int], _MostLeft] = {}
        #: Times that it looked, not counting what it knew.
        self.searches = 0

    def place(
        self, claim: ClaimView, chip: str, *, avoid: Mask | None = None
    ) -> tuple[ReplicaPlacement, ...] | None:
        """Take room for the whole gang on cards of that chip; None, and nothing is taken, if there is none.

        A gang that may start with fewer replicas gets as many as fit where its fewest do. The same gang is not
        looked for twice as long as nothing was given back.

        :param avoid: rows that are kept for somebody else.
        """
        seats = self._find(claim, chip, avoid)
        return None if seats is None else tuple(seat.placement for seat in seats)

    def place_on_best(
        self, claim: ClaimView, choices: Sequence[tuple[str, Mask | None]]
    ) -> tuple[str, tuple[ReplicaPlacement, ...]] | None:
        """Take room for the gang on one of several equally good chips; None, and nothing is taken, if none has it.

        That is where most replicas fit, then where the smallest domain holds them, then where it costs least.

        :param choices: chips, each with its rows that are kept for somebody else.
        """
        if len(choices) == 1:
            ((chip, avoid),) = choices
            placed = self.place(claim, chip, avoid=avoid)
            return None if placed is None else (chip, placed)
        options = []
        for chip, avoid in choices:
            before = self.fleet.mark()
            if (seats := self._find(claim, chip, avoid)) is not None:
                options.append(self._option(claim, chip, seats))
                self.fleet.undo(before)
        if not options:
            return None
        best = min(options)
        return best.chip, tuple(self._take_again(seat) for seat in best.seats)

    def _find(self, claim: ClaimView, chip: str, avoid: Mask | None) -> tuple[_Seat, ...] | None:
        search = search_of(claim, chip)
        parts = search.parts
        key = search, None if avoid is None else avoid.tobytes()
        failed = self._failed.get(key)
        if failed is not None and self.fleet.only_shrunk_since(failed):
            return None
        if self._lacks_cards(parts):
            return None
        self.searches += 1
        seats = self._search(parts, claim, avoid)
        if seats is None:
            moment = self._failed[key] = self.fleet.moment()
            self._left[chip, moment.frees] = _MostLeft(moment, *self.fleet.most_left(chip))
        return seats

    def _option(self, claim: ClaimView, chip: str, seats: tuple[_Seat, ...]) -> _Option:
        rows = [seat.row for seat in seats]
        level = 0
        if len(seats) > 1:
            levels = self.fleet.topology.between(claim.near or NODE, claim.within or CLUSTER)
            together = (len(set(each.domain[rows].tolist())) == 1 for each in levels)
            level = next((number for number, one in enumerate(together) if one), len(levels))
        return _Option(
            missing=sum(role.replicas for role in claim.shape.roles) - len(seats),
            level=level,
            score=sum(seat.score for seat in seats),
            row=rows[0],
            chip=chip,
            seats=seats,
        )

    def _take_again(self, seat: _Seat) -> ReplicaPlacement:
        role, index = seat.placement.role, seat.placement.index
        return self.fleet.take(seat.row, seat.demand, role=role, index=index)

    def _lacks_cards(self, parts: Sequence[AskedRole]) -> bool:
        """Whether it is known that no row has the cards of one replica, whatever else they ask for."""
        for part in parts:
            shape = part.demand.shape
            left = self._left.get((part.demand.chip, self.fleet.moment().frees))
            if left is not None and self.fleet.only_shrunk_since(left.moment):
                enough = left.share >= shape.share if shape.shares else left.cards >= shape.cards
                if not enough:
                    return True
        return False

    def could_hold(self, claim: ClaimView, chip: str, *, avoid: Mask | None = None) -> Mask:
        """[rows]: those under a domain with enough for each role, and for all of them in sum.

        For equal replicas that is where they fit; for several roles they may not fit even there.
        """
        could = np.zeros(len(self.fleet.rows), dtype=np.bool_)
        widest = claim.within or CLUSTER
        for level in self.fleet.topology.between(widest, widest):
            domains, _ = self._candidates(level, search_of(claim, chip).parts, avoid)
            could |= np.isin(level.domain, domains)
        return could

    def _search(
        self, parts: tuple[AskedRole, ...], claim: ClaimView, avoid: Mask | None
    ) -> tuple[_Seat, ...] | None:
        if claim.within:
            # Also where one node holds it: a node that stands under no leaf is not a leaf of its own.
            avoid = _barred(self.fleet.topology.inside(claim.within), avoid)
        if len(parts) == 1 and parts[0].wanted == 1:
            # One replica has no network between its parts.
            return self._within(None, parts, avoid)
        # One Launch runs in one cluster, so that is the widest.
        levels = self.fleet.topology.between(claim.near or NODE, claim.within or CLUSTER)
        whole = tuple(part._replace(fewest=part.wanted) for part in parts)
        placed = self._smallest(levels, whole, avoid)
        if placed is None and whole != parts:
            placed = self._roomiest(levels, parts, avoid)
        return placed

    def _smallest(
        self, levels: Sequence[Level], parts: Sequence[AskedRole], avoid: Mask | None
    ) -> tuple[_Seat, ...] | None:
        """In the smallest domain that holds it, and among those in the fullest."""
        for level in levels:
            domains, spare = self._candidates(level, parts, avoid)
            for domain in domains[np.argsort(spare, kind="stable")][:MOST_DOMAINS]:
                if placed := self._within(level.rows(int(domain)), parts, avoid):
                    return placed
        return None

    def _roomiest(
        self, levels: Sequence[Level], parts: Sequence[AskedRole], avoid: Mask | None
    ) -> tuple[_Seat, ...] | None:
        """An elastic gang that nowhere fits whole: where most of it does."""
        for level in reversed(levels):
            domains, spare = self._candidates(level, parts, avoid)
            for domain in domains[np.argsort(-spare, kind="stable")][:MOST_DOMAINS]:
                if placed := self._within(level.rows(int(domain)), parts, avoid):
                    return placed
        return None

    def _candidates(
        self, level: Level, parts: Sequence[AskedRole], avoid: Mask | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Domains that could hold all roles, and the cards that each has room for, role by role."""
        enough = np.ones(len(level), dtype=np.bool_)
        spare = np.zeros(len(level), dtype=np.int64)
        some = np.zeros(len(self.fleet.rows), dtype=np.bool_)
        for part in parts:
            times = np.minimum(self.fleet.times(part.demand), _MOST_REPLICAS)
            if avoid is not None:
                times = np.where(avoid, 0, times)
            room = level.totals(times)
            enough &= room >= part.fewest
            spare += room * part.demand.shape.cards
            some |= times > 0
        if len(parts) > 1:
            enough &= self._enough_for_all(level, parts, some)
        domains = np.flatnonzero(enough)
        return domains, spare[domains]

    def _enough_for_all(self, level: Level, parts: Sequence[AskedRole], some: Mask) -> Mask:
        """[domains]: whether what all roles need together is free there, on rows with room for some of them."""
        left = self.fleet.states.lefts[self.fleet.state].sum(axis=1, dtype=np.int64)
        enough = np.ones(len(level), dtype=np.bool_)
        for need, free in (
            (sum(part.fewest * part.demand.shape.amount for part in parts), left),
            (sum(part.fewest * part.demand.shape.cpu for part in parts), self.fleet.cpu),
            (sum(part.fewest * part.demand.shape.memory for part in parts), self.fleet.memory),
        ):
            enough &= level.totals(np.where(some, np.clip(free, 0, need), 0)) >= need
        return enough

    def _within(
        self, inside: Mask | None, parts: Sequence[AskedRole], avoid: Mask | None
    ) -> tuple[_Seat, ...] | None:
        """Replica by replica where each adds the fewest fragments; nothing if a role does not get its fewest.

        No role grows before all have started.
        """
        mark = self.fleet.mark()
        placed: list[_Seat] = []
        barred = _barred(inside, avoid)
        for part in parts:
            for index in range(part.fewest):
                seat = self._seat(part, index, barred)
                if seat is None:
                    self.fleet.undo(mark)
                    return None
                placed.append(seat)
        for part in parts:
            for index in range(part.fewest, part.wanted):
                seat = self._seat(part, index, barred)
                if seat is None:
                    break
                placed.append(seat)
        return tuple(placed)

    def _seat(self, part: AskedRole, index: int, barred: Mask | None) -> _Seat | None:
        """Room for one replica, taken where it is best; None if there is none."""
        scores = self._board.scores(part.demand)
        if barred is not None:
            scores = np.where(barred, NO_ROOM, scores)
        if not len(scores):
            return None
        row = int(scores.argmin())
        score = int(scores[row])
        if score == NO_ROOM:
            return None
        placement = self.fleet.take(row, part.demand, role=part.role, index=index)
        return _Seat(row, part.demand, placement, score)


def _barred(inside: Mask | None, avoid: Mask | None) -> NDArray[np.bool_] | None:
    if inside is None:
        return avoid
    return ~inside if avoid is None else ~inside | avoid
