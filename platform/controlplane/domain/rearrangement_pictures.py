"""What a rearrangement does to the nodes that it touches, card by card, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from controlplane.domain.rearrangements import cards_of
from controlplane.domain.scheduling.moves import Move
from controlplane.domain.scheduling.plans import ReplicaPlacement
from controlplane.domain.scheduling.snapshots import NodeView, Snapshot


class Spot(StrEnum):
    """What is on a card that no move is about."""

    FREE = "free"
    OTHER = "other"
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePicture:
    """A node that moves lead from or to; cards in index order."""

    node: str
    name: str
    #: Of each card a ``Spot``, or the number of the move (from 1) that is on it.
    before: tuple[str, ...]
    after: tuple[str, ...]
    #: Positions of the cards that are part of the room.
    room: tuple[int, ...]


def pictures(
    snapshot: Snapshot, moves: Sequence[Move], room: Iterable[ReplicaPlacement]
) -> tuple[NodePicture, ...]:
    """The touched nodes, before and after all moves, in the order of the snapshot."""
    leaving = _numbered([move.source for move in moves])
    coming = _numbered([move.target for move in moves])
    kept = cards_of(room)
    touched = {
        replica.node for move in moves for replica in (*move.source, *move.target) if replica.count
    } | {replica.node for replica in room if replica.count}
    numbers = {move.claim: str(number) for number, move in enumerate(moves, 1)}
    return tuple(
        _picture(node, leaving, coming, kept, numbers)
        for node in snapshot.nodes
        if node.uid in touched
    )


def _numbered(places: Sequence[Sequence[ReplicaPlacement]]) -> dict[str, str]:
    """The number of the move on each card."""
    return {uid: str(number) for number, each in enumerate(places, 1) for uid in cards_of(each)}


def _picture(
    node: NodeView,
    leaving: Mapping[str, str],
    coming: Mapping[str, str],
    kept: set[str],
    numbers: Mapping[str, str],
) -> NodePicture:
    cards = sorted(node.cards, key=lambda card: card.index)
    before = []
    for card in cards:
        if card.held_by is not None:
            before.append(numbers.get(card.held_by, Spot.OTHER.value))
        else:
            before.append(Spot.FREE.value if card.free else Spot.UNUSABLE.value)
    after = [
        coming.get(card.uid) or (Spot.FREE.value if card.uid in leaving else was)
        for card, was in zip(cards, before, strict=True)
    ]
    return NodePicture(
        node=node.uid,
        name=node.name,
        before=tuple(before),
        after=tuple(after),
        room=tuple(place for place, card in enumerate(cards) if card.uid in kept),
    )
