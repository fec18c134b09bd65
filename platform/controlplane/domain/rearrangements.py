"""Rearrangements: moves of running work that somebody has to approve, carried out one after the other.

::

    PROPOSED ──approve──▶ APPROVED ──begin──▶ UNDER_WAY ──finish──▶ DONE
       │ expire               │ fail              │ fail
       ▼                      ▼                   ▼
    EXPIRED               FAILED ◀────────────────┘      dismiss: from each of the three, ▶ DISMISSED

    a move:   PLANNED ──stop──▶ STOPPING ──leave──▶ LANDING ──land──▶ LANDED
                 │ drop             │ end, miss         │ end, miss
                 ▼                  ▼                   ▼
              DROPPED             ENDED: the work is over, which makes the same room; MISSED: it took too long

The cards that a move needs are nominated to the work that moves before it is told to stop, and the room that
grows is kept for what it is made for. So nobody comes in between, whoever dies in the middle of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from controlplane.domain.claims import ClaimState
from controlplane.domain.machines import Machine
from controlplane.domain.scheduling.moves import Move, can_move
from controlplane.domain.scheduling.plans import ReplicaPlacement
from controlplane.domain.scheduling.snapshots import CardView, NodeView, Snapshot

#: The fleet changes: what was proposed longer ago than that is proposed anew.
PROPOSED_FOR = timedelta(minutes=30)
#: How long a claim has to save and stop.
GRACE = timedelta(minutes=2)
#: From the order to stop until the work holds cards elsewhere.
MOVE_WITHIN = timedelta(minutes=15)
#: How long cards stay kept once nobody turns the loop any more, and for the claim once all have moved.
KEPT_FOR = timedelta(minutes=10)


class Purpose(StrEnum):
    WHOLE_NODES = "whole_nodes"
    ROOM_FOR = "room_for"
    FEWER_FRAGMENTS = "fewer_fragments"


class RearrangementState(StrEnum):
    PROPOSED = "proposed"
    APPROVED = "approved"
    UNDER_WAY = "under_way"
    DONE = "done"
    FAILED = "failed"
    DISMISSED = "dismissed"
    EXPIRED = "expired"


class RearrangementEvent(StrEnum):
    APPROVE = "approve"
    BEGIN = "begin"
    FINISH = "finish"
    FAIL = "fail"
    DISMISS = "dismiss"
    EXPIRE = "expire"


REARRANGEMENT = Machine(
    name="rearrangement",
    initial=RearrangementState.PROPOSED,
    arrows={
        (RearrangementState.PROPOSED, RearrangementEvent.APPROVE): RearrangementState.APPROVED,
        (RearrangementState.PROPOSED, RearrangementEvent.DISMISS): RearrangementState.DISMISSED,
        (RearrangementState.PROPOSED, RearrangementEvent.EXPIRE): RearrangementState.EXPIRED,
        (RearrangementState.APPROVED, RearrangementEvent.BEGIN): RearrangementState.UNDER_WAY,
        (RearrangementState.APPROVED, RearrangementEvent.FAIL): RearrangementState.FAILED,
        (RearrangementState.APPROVED, RearrangementEvent.DISMISS): RearrangementState.DISMISSED,
        (RearrangementState.UNDER_WAY, RearrangementEvent.FINISH): RearrangementState.DONE,
        (RearrangementState.UNDER_WAY, RearrangementEvent.FAIL): RearrangementState.FAILED,
        (RearrangementState.UNDER_WAY, RearrangementEvent.DISMISS): RearrangementState.DISMISSED,
    },
)
#: Those that the loop carries on.
ACTIVE = (RearrangementState.APPROVED, RearrangementState.UNDER_WAY)


class MoveState(StrEnum):
    PLANNED = "planned"
    STOPPING = "stopping"
    LANDING = "landing"
    LANDED = "landed"
    ENDED = "ended"
    MISSED = "missed"
    DROPPED = "dropped"


class MoveEvent(StrEnum):
    STOP = "stop"
    LEAVE = "leave"
    LAND = "land"
    END = "end"
    MISS = "miss"
    DROP = "drop"


MOVE = Machine(
    name="move",
    initial=MoveState.PLANNED,
    arrows={
        (MoveState.PLANNED, MoveEvent.STOP): MoveState.STOPPING,
        (MoveState.PLANNED, MoveEvent.DROP): MoveState.DROPPED,
        (MoveState.STOPPING, MoveEvent.LEAVE): MoveState.LANDING,
        (MoveState.STOPPING, MoveEvent.END): MoveState.ENDED,
        (MoveState.STOPPING, MoveEvent.MISS): MoveState.MISSED,
        (MoveState.LANDING, MoveEvent.LAND): MoveState.LANDED,
        (MoveState.LANDING, MoveEvent.END): MoveState.ENDED,
        (MoveState.LANDING, MoveEvent.MISS): MoveState.MISSED,
    },
)
#: Cards of such a move are on their way.
IN_MOTION = (MoveState.STOPPING, MoveState.LANDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is seen of a claim that moves."""

    #: It has given its cards back.
    released: bool
    #: The state of the claim that takes its work up again; None while there is none.
    successor: ClaimState | None = None
    #: Its time is over.
    late: bool = False


def move_event(state: MoveState, sight: Sight) -> MoveEvent | None:
    """What has happened to a move that was begun; None if nothing.

    An owner gives the cards back and asks for others in one transaction: a claim that is released and has no
    successor belongs to work that is over.
    """
    if state is MoveState.STOPPING and sight.released:
        return MoveEvent.END if sight.successor is None else MoveEvent.LEAVE
    if state is MoveState.LANDING:
        if sight.successor in (ClaimState.ADMITTED, ClaimState.REVOKING):
            return MoveEvent.LAND
        if sight.successor in (ClaimState.RELEASED, None):
            return MoveEvent.END
    if state in IN_MOTION and sight.late:
        return MoveEvent.MISS
    return None


# -- Cards by name --


def named(
    moves: Sequence[Move], room: Sequence[ReplicaPlacement], snapshot: Snapshot, *, chip: str
) -> tuple[tuple[Move, ...], tuple[ReplicaPlacement, ...]]:
    """The moves and the room with a card named wherever a node's plug-in chooses: any free one stands for it.

    :param chip: of the room.
    """
    nodes = {node.uid: node for node in snapshot.nodes}
    free = {card.uid for node in snapshot.nodes for card in node.cards if card.free}
    free -= {card.uid for node in snapshot.nodes for card in node.cards if card.nominated_for}

    def settle(replicas: Iterable[ReplicaPlacement], chip: str) -> tuple[ReplicaPlacement, ...]:
        settled = []
        for replica in replicas:
            cards = replica.cards
            if len(cards) < replica.count:
                there = nodes[replica.node].cards
                fitting = [card.uid for card in there if card.chip == chip and card.uid in free]
                cards = tuple(fitting[: replica.count])
            free.difference_update(cards)
            settled.append(replace(replica, cards=cards))
        return tuple(settled)

    settled_moves = []
    for move in moves:
        free |= cards_of(move.source)
        settled_moves.append(replace(move, target=settle(move.target, move.chip)))
    return tuple(settled_moves), settle(room, chip)


# -- Whether the moves can still be made --


def what_changed(
    moves: Sequence[tuple[int, Move]],
    room: Iterable[str],
    snapshot: Snapshot,
    *,
    keepers: Iterable[str] = (),
) -> tuple[str, ...]:
    """Why the moves, each with its number, cannot be made any more, in words; nothing if they can.

    :param room: uids of the cards that have to be free once all are made.
    :param keepers: cards that are kept for one of those are as good as free.
    """
    return _Look(snapshot, frozenset(keepers)).changes(moves, frozenset(room))


class _Look:
    """The fleet as the moves find it, one after the other."""

    def __init__(self, snapshot: Snapshot, keepers: frozenset[str]) -> None:
        self._running = {running.uid: running for running in snapshot.running}
        self._nodes = {node.uid: node for node in snapshot.nodes}
        self._cards = {card.uid: card for node in snapshot.nodes for card in node.cards}
        self._keepers = keepers
        #: Cards that moves before have freed, and taken.
        self._freed: set[str] = set()
        self._taken: set[str] = set()

    def changes(self, moves: Sequence[tuple[int, Move]], room: frozenset[str]) -> tuple[str, ...]:
        found: list[str] = []
        for number, move in moves:
            for words in self._of_move(move):
                reason = f"move {number}: {words}"
                found.append(reason)
            self._freed |= cards_of(move.source)
            self._taken |= cards_of(move.target)
        for node in self._nodes.values():
            busy = [card.uid for card in node.cards if card.uid in room and not self._has(card)]
            if busy:
                reason = f"the room: {_no_longer_free(node, busy)}"
                found.append(reason)
        return tuple(found)

    def _of_move(self, move: Move) -> list[str]:
        if obstacle := self._of_work(move):
            return [obstacle]
        return [words for replica in move.target if (words := self._of_place(replica))]

    def _of_work(self, move: Move) -> str:
        """What has become of it; empty where it is as it was."""
        running = self._running.get(move.claim)
        if running is None:
            return "the work has ended, or has stopped"
        if not can_move(running):
            return "the work was told to stop, or can no longer be moved"
        if _places(running.replicas) != _places(move.source):
            return "the work holds other cards than it did"
        return ""

    def _of_place(self, replica: ReplicaPlacement) -> str:
        """Why it cannot come there; empty where it can."""
        node = self._nodes.get(replica.node)
        if node is None:
            return f"there is no node {replica.node} any more"
        if not node.takes_work:
            return f"node {node.name} takes no work any more"
        busy = [uid for uid in replica.cards if not self._is_free(uid)]
        return _no_longer_free(node, busy) if busy else ""

    def _is_free(self, uid: str) -> bool:
        card = self._cards.get(uid)
        return card is not None and self._has(card)

    def _has(self, card: CardView) -> bool:
        if card.uid in self._taken or (
            card.nominated_for and card.nominated_for not in self._keepers
        ):
            return False
        return card.free or card.uid in self._freed


def _places(replicas: Iterable[ReplicaPlacement]) -> list[tuple[str, int, str, tuple[str, ...]]]:
    return sorted((each.role, each.index, each.node, each.cards) for each in replicas)


def _no_longer_free(node: NodeView, uids: Sequence[str]) -> str:
    indices = ", ".join(str(card.index) for card in node.cards if card.uid in uids)
    if len(uids) == 1:
        return f"card {indices} of {node.name} is no longer free"
    return f"cards {indices} of {node.name} are no longer free"


def cards_of(replicas: Iterable[ReplicaPlacement]) -> set[str]:
    """Uids of their cards; those that a node's plug-in chooses are not among them."""
    return {uid for replica in replicas for uid in replica.cards}
