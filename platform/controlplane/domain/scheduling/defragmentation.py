"""A few moves of running work that make room, and whether they are worth it.

Placement keeps fragments small, but work ends where it ends, and after a day no node may be whole although a
third of the cards are idle. What would help is tried on the arrays and taken back: claims that were saved are
freed, put elsewhere by the same placer, and what came of it is compared with what it cost. A move is part of the
plan only if the room that it makes, used for as long as ``worth`` says, outweighs the work that it throws away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import WHOLE_CARD, GangShape
from controlplane.domain.scheduling.fleet import Fleet, Mask
from controlplane.domain.scheduling.fragmentation import Fragmentation
from controlplane.domain.scheduling.moves import Move, Mover
from controlplane.domain.scheduling.placement import Placer
from controlplane.domain.scheduling.shapes import Demand, typical_of
from controlplane.domain.scheduling.snapshots import ClaimView, RunningView, Snapshot
from controlplane.domain.scheduling.topology import CLUSTER, NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeNodes:
    """More nodes on which nothing runs, so that large claims find room."""

    #: So many; then it is enough.
    nodes: int = 1
    #: Only nodes with this chip; empty means any.
    chip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomFor:
    """Room for a claim that waits, on cards of that chip."""

    claim: ClaimView
    chip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FewerFragments:
    """Fewer cards that nobody can use, against what is typically asked for."""


Wish = WholeNodes | RoomFor | FewerFragments


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far it may go, and what a card is worth."""

    #: Most claims that are moved.
    moves: int = 16
    #: Most places that are tried for each step of the plan.
    tries: int = 64
    #: From the stop of a claim until it goes on elsewhere; all of its cards are idle meanwhile.
    restart: timedelta = timedelta(minutes=3)
    #: How long a card that becomes usable is used before it would have been usable anyway.
    worth: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragmentationPlan:
    """Moves in the order in which they have to be made, and what they bring."""

    moves: tuple[Move, ...]
    #: Nodes on which nothing runs: before, and after.
    whole_before: int
    whole_after: int
    #: Cards that are fragments: before, and after.
    fragments_before: float
    fragments_after: float
    #: Card-seconds that the moves throw away, and that the room is worth.
    cost: float
    gain: float
    #: What comes of it, or why nothing is moved, in words with numbers.
    reason: str


def defragmentation(
    snapshot: Snapshot, wish: Wish, *, at: datetime, bounds: Bounds | None = None
) -> DefragmentationPlan:
    """The moves that fulfil the wish at the least cost that was found; none where nothing is worth it.

    After moves for a claim, "after" is the fleet with that claim in its place.
    """
    bench = _Bench(snapshot, at=at, bounds=bounds or Bounds())
    match wish:
        case WholeNodes():
            return bench.whole_nodes(wish)
        case RoomFor():
            return bench.room_for(wish)
        case FewerFragments():
            return bench.fewer_fragments()


class _Offer(NamedTuple):
    """Claims that would leave a row."""

    #: What that costs for each replica that could sit there then.
    price: float
    row: int
    leaving: tuple[RunningView, ...]
    #: Replicas of the newcomer for which there would be room.
    seats: int


class _Bench:
    """A fleet on which moves are tried."""

    def __init__(self, snapshot: Snapshot, *, at: datetime, bounds: Bounds) -> None:
        typical = typical_of(snapshot)
        self._fleet = Fleet(snapshot)
        self._placer = Placer(self._fleet, typical)
        self._fragmentation = Fragmentation(self._fleet, typical)
        self._mover = Mover(self._placer, snapshot.running, at=at, restart=bounds.restart)
        self._bounds = bounds
        self._worth = bounds.worth.total_seconds()
        self._names = {node.uid: node.name for node in snapshot.nodes}
        (self._nodes,) = self._fleet.topology.between(NODE, NODE)
        #: [nodes]: usable cards, whether held or not; none where no work is taken.
        self._usable = self._nodes.totals(
            np.array(
                [
                    sum(card.state is CardState.USABLE for card in row.cards)
                    if row.node.takes_work
                    else 0
                    for row in self._fleet.rows
                ],
                dtype=np.int64,
            )
        )
        self._whole_before = int(self._whole().sum())
        self._fragments_before = self._fragments()

    # -- Whole nodes --

    def whole_nodes(self, wish: WholeNodes) -> DefragmentationPlan:
        gain = 0.0
        freed: list[str] = []
        while len(freed) < wish.nodes and (node := self._emptied(wish.chip)) is not None:
            gain += float(self._usable[node]) * self._worth
            freed.append(self._names[self._nodes.names[node]])
        if not freed:
            return self._done("no node can be emptied at less than that is worth")
        return self._done(f"{', '.join(freed)} would be whole", gain)

    def _emptied(self, chip: str) -> int | None:
        """The node that was emptied for the best net gain; None if none is worth it."""
        kept = self._whole()
        offers: list[tuple[float, int, tuple[RunningView, ...]]] = []
        for node in np.flatnonzero((self._usable > 0) & ~kept).tolist():
            rows = np.flatnonzero(self._nodes.rows(node))
            if chip and chip not in {self._fleet.rows[row].chip for row in rows}:
                continue
            leaving = self._mover.movable_on(self._nodes.names[node])
            net = self._usable[node] * self._worth - self._mover.cost(leaving)
            if net > 0 and self._whole_without(leaving, node):
                offers.append((-net, node, leaving))
        for _, node, leaving in sorted(offers, key=lambda offer: offer[:2])[: self._bounds.tries]:
            avoid = kept[self._nodes.domain] | self._nodes.rows(node)
            if self._may_move(leaving) and self._mover.move(leaving, avoid=avoid):
                return node
        return None

    def _whole(self) -> Mask:
        """[nodes]: nothing runs there, and everything that is not faulty can be had."""
        empty = np.array([not self._mover.standing[uid] for uid in self._nodes.names], dtype=bool)
        whole: Mask = empty & (self._usable > 0) & (self._free() == self._usable)
        return whole

    def _whole_without(self, leaving: tuple[RunningView, ...], node: int) -> bool:
        uid = self._nodes.names[node]
        left = self._mover.standing[uid] - sum(
            replica.node == uid for each in leaving for replica in each.replicas
        )
        return not left and self._mover.without(leaving, self._free)[node] == self._usable[node]

    def _free(self) -> NDArray[np.int64]:
        """[nodes]: cards of which nobody has anything."""
        return self._nodes.totals(self._fleet.whole_cards())

    # -- Room for a claim --

    def room_for(self, wish: RoomFor) -> DefragmentationPlan:
        mark = self._fleet.mark()
        if self._placer.place(wish.claim, wish.chip) is not None:
            self._fleet.undo(mark)
            return self._done("there is room for it already")
        worth = self._worth * wish.claim.shape.fewest_cards
        best: tuple[float, Mask] | None = None
        for outside in self._outsides(wish.claim):
            if self._seat(wish, outside):
                cost = sum(move.cost for move in self._mover.moves)
                if cost < (worth if best is None else best[0]):
                    best = cost, outside
            self._mover.undo(mark)
        if best is None:
            return self._done("no moves make room for it at less than that is worth")
        self._seat(wish, best[1])
        return self._done(f"there would be room for {wish.claim.shape.in_words()}", worth)

    def _outsides(self, claim: ClaimView) -> Iterator[Mask]:
        """For each domain under which all of the claim may stand, the rows that are not in it."""
        widest = claim.within or CLUSTER
        for level in self._fleet.topology.between(widest, widest):
            for domain in range(min(len(level), self._bounds.tries)):
                yield ~level.rows(domain)

    def _seat(self, wish: RoomFor, outside: Mask) -> bool:
        """A seat for each replica; where too few are free, whoever leaves most cheaply makes room."""
        for role in sorted(wish.claim.shape.roles, key=lambda role: (-role.cards, -role.share)):
            one = replace(role, replicas=1, least=0)
            guest = replace(wish.claim, shape=GangShape(roles=(one,)), within="", near="")
            seated = 0
            while seated < role.fewest and self._sits(guest, wish.chip, outside):
                seated += 1
            if seated < role.fewest:
                demand = Demand.of(one, guest, wish.chip)
                if not self._cleared(guest, demand, outside, role.fewest - seated):
                    return False
        return True

    def _sits(self, guest: ClaimView, chip: str, outside: Mask) -> bool:
        return self._placer.place(guest, chip, avoid=outside) is not None

    def _cleared(self, guest: ClaimView, demand: Demand, outside: Mask, missing: int) -> bool:
        """Whether rows could be cleared for the guests that stand; all of them sit then."""
        offers = sorted(self._offers(demand, outside), key=lambda offer: (offer.price, offer.row))
        for first in range(len(offers)):
            taken, seats = [], 0
            for offer in offers[first:]:
                taken.append(offer)
                seats += offer.seats
                if seats >= missing:
                    break
            else:
                return False
            mark = self._fleet.mark()
            if self._swapped(taken) and all(
                self._sits(guest, demand.chip, outside) for _ in range(missing)
            ):
                return True
            self._mover.undo(mark)
        return False

    def _swapped(self, offers: list[_Offer]) -> bool:
        """Whether everybody who would leave finds room outside of all the nodes that are cleared."""
        leaving = tuple({each.uid: each for offer in offers for each in offer.leaving}.values())
        cleared = self._fleet.mask([self._fleet.rows[offer.row].node.uid for offer in offers])
        return self._may_move(leaving) and self._mover.move(leaving, avoid=cleared)

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
            if len(offers) >= self._bounds.tries:
                break
        return offers

    def _seats(self, demand: Demand, row: int) -> int:
        """Replicas that the row has room for now."""
        return int(self._fleet.times(demand)[row])

    # -- Fewer fragments --

    def fewer_fragments(self) -> DefragmentationPlan:
        fragments = self._fragments_before
        for each in self._mover.candidates()[: self._bounds.tries]:
            mark = self._fleet.mark()
            if not (self._may_move((each,)) and self._mover.move((each,))):
                continue
            left = self._fragments()
            if (fragments - left) * self._worth > self._mover.cost((each,)):
                fragments = left
            else:
                self._mover.undo(mark)
        if not self._mover.moves:
            return self._done("no move frees more from fragments than it costs")
        saved = self._fragments_before - fragments
        return self._done(f"{saved:.1f} fewer cards would be fragments", saved * self._worth)

    def _fragments(self) -> float:
        return self._fragmentation.total() / WHOLE_CARD

    # -- What comes of it --

    def _may_move(self, leaving: tuple[RunningView, ...]) -> bool:
        return len(self._mover.moves) + len(leaving) <= self._bounds.moves

    def _done(self, reason: str, gain: float = 0.0) -> DefragmentationPlan:
        moves = self._mover.moves
        return DefragmentationPlan(
            moves=moves,
            whole_before=self._whole_before,
            whole_after=int(self._whole().sum()),
            fragments_before=self._fragments_before,
            fragments_after=self._fragments(),
            cost=sum(move.cost for move in moves),
            gain=gain,
            reason=reason,
        )
