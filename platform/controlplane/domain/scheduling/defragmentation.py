"""A few moves of running work that make room, and whether they are worth it.

Placement keeps fragments small, but work ends where it ends, and after a day no node may be whole although a
third of the cards are idle. What would help is tried on the arrays and taken back: claims that were saved are
freed, put elsewhere by the same placer, and what came of it is compared with what it cost. A move is part of the
plan only if the room that it makes, used for as long as ``worth`` says, outweighs the work that it throws away.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import WHOLE_CARD
from controlplane.domain.scheduling.fleet import Fleet, Mask
from controlplane.domain.scheduling.fragmentation import Fragmentation
from controlplane.domain.scheduling.moves import Move, Mover
from controlplane.domain.scheduling.placement import Placer
from controlplane.domain.scheduling.plans import ReplicaPlacement
from controlplane.domain.scheduling.rooms import Rooms
from controlplane.domain.scheduling.shapes import typical_of
from controlplane.domain.scheduling.snapshots import ClaimView, RunningView, Snapshot
from controlplane.domain.scheduling.topology import NODE


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
    #: Where there is room then: the seats of the claim, or whole nodes with every card that can be used.
    room: tuple[ReplicaPlacement, ...] = ()


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
            freed.append(self._nodes.names[node])
        if not freed:
            return self._done(reason="no node can be emptied at less than that is worth")
        names = ", ".join(self._names[node] for node in freed)
        room = tuple(map(self._everything_on, freed))
        return self._done(reason=f"{names} would be whole", gain=gain, room=room)

    def _everything_on(self, node: str) -> ReplicaPlacement:
        """All cards of the node that can be used."""
        cards = tuple(
            card.uid
            for row in self._fleet.rows
            if row.node.uid == node
            for card in row.cards
            if card.state is CardState.USABLE
        )
        return ReplicaPlacement(role="", index=0, node=node, cards=cards, count=len(cards))

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
            return self._done(reason="there is room for it already")
        worth = self._worth * wish.claim.shape.fewest_cards
        rooms = Rooms(self._mover, moves=self._bounds.moves, tries=self._bounds.tries)
        seats = rooms.make(wish.claim, wish.chip, worth=worth)
        if seats is None:
            return self._done(reason="no moves make room for it at less than that is worth")
        asked = wish.claim.shape.in_words()
        return self._done(reason=f"there would be room for {asked}", gain=worth, room=seats)

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
            return self._done(reason="no move frees more from fragments than it costs")
        saved = self._fragments_before - fragments
        return self._done(
            reason=f"{saved:.1f} fewer cards would be fragments", gain=saved * self._worth
        )

    def _fragments(self) -> float:
        takes_work = np.array([row.node.takes_work for row in self._fleet.rows], dtype=np.bool_)
        return float(self._fragmentation.by_row()[takes_work].sum()) / WHOLE_CARD

    # -- What comes of it --

    def _may_move(self, leaving: tuple[RunningView, ...]) -> bool:
        return len(self._mover.moves) + len(leaving) <= self._bounds.moves

    def _done(
        self, *, reason: str, gain: float = 0.0, room: tuple[ReplicaPlacement, ...] = ()
    ) -> DefragmentationPlan:
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
            room=room,
        )
