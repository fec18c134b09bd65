"""Execution of defragmentation plans: relocations that somebody has to approve, carried out one after the other.

::

    PROPOSED ──approve──▶ APPROVED ──begin──▶ UNDER_WAY ──finish──▶ DONE
       │ expire               │ fail              │ fail
       ▼                      ▼                   ▼
    EXPIRED               FAILED ◀────────────────┘      dismiss: from each of the three, ▶ DISMISSED

    a relocation:   PLANNED ──stop──▶ STOPPING ──leave──▶ LANDING ──land──▶ LANDED
                       │ drop             │ end, miss         │ end, miss
                       ▼                  ▼                   ▼
                    DROPPED             ENDED: the claim is finished, which frees the same room; MISSED: timed out

The target cards of a relocation are nominated for the claim before it is evicted, and the freed capacity is
nominated for the pending claim. So no other claim gets them, whichever process is killed in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.state_machine import StateMachine
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.scheduling.relocation import Relocation, can_relocate
from controlplane.domain.scheduling.snapshots import (
    CardSnapshot,
    NodeSnapshot,
    ReplicaPlacement,
    SchedulingSnapshot,
)

#: How long a proposal can be approved, as the fleet changes.
PROPOSAL_LIFETIME = timedelta(minutes=30)
#: How long a claim has to save and stop.
EVICTION_GRACE = timedelta(minutes=2)
#: From the eviction until the workload holds cards elsewhere.
RELOCATION_TIMEOUT = timedelta(minutes=15)
#: How long cards stay nominated if the controller stops, and for the claim once all are relocated.
NOMINATION_LIFETIME = timedelta(minutes=10)


class DefragmentationPurpose(StrEnum):
    WHOLE_NODES = "whole_nodes"
    ROOM_FOR = "room_for"
    FEWER_FRAGMENTS = "fewer_fragments"


class DefragmentationState(StrEnum):
    PROPOSED = "proposed"
    APPROVED = "approved"
    UNDER_WAY = "under_way"
    DONE = "done"
    FAILED = "failed"
    DISMISSED = "dismissed"
    EXPIRED = "expired"


class DefragmentationEvent(StrEnum):
    APPROVE = "approve"
    BEGIN = "begin"
    FINISH = "finish"
    FAIL = "fail"
    DISMISS = "dismiss"
    EXPIRE = "expire"


DEFRAGMENTATION = StateMachine(
    name="defragmentation plan",
    initial=DefragmentationState.PROPOSED,
    transitions={
        (
            DefragmentationState.PROPOSED,
            DefragmentationEvent.APPROVE,
        ): DefragmentationState.APPROVED,
        (
            DefragmentationState.PROPOSED,
            DefragmentationEvent.DISMISS,
        ): DefragmentationState.DISMISSED,
        (DefragmentationState.PROPOSED, DefragmentationEvent.EXPIRE): DefragmentationState.EXPIRED,
        (DefragmentationState.APPROVED, DefragmentationEvent.BEGIN): DefragmentationState.UNDER_WAY,
        (DefragmentationState.APPROVED, DefragmentationEvent.FAIL): DefragmentationState.FAILED,
        (
            DefragmentationState.APPROVED,
            DefragmentationEvent.DISMISS,
        ): DefragmentationState.DISMISSED,
        (DefragmentationState.UNDER_WAY, DefragmentationEvent.FINISH): DefragmentationState.DONE,
        (DefragmentationState.UNDER_WAY, DefragmentationEvent.FAIL): DefragmentationState.FAILED,
        (
            DefragmentationState.UNDER_WAY,
            DefragmentationEvent.DISMISS,
        ): DefragmentationState.DISMISSED,
    },
)
#: States that the controller carries on.
ACTIVE = (DefragmentationState.APPROVED, DefragmentationState.UNDER_WAY)


class RelocationState(StrEnum):
    PLANNED = "planned"
    STOPPING = "stopping"
    LANDING = "landing"
    LANDED = "landed"
    ENDED = "ended"
    MISSED = "missed"
    DROPPED = "dropped"


class RelocationEvent(StrEnum):
    STOP = "stop"
    LEAVE = "leave"
    LAND = "land"
    END = "end"
    MISS = "miss"
    DROP = "drop"


RELOCATION = StateMachine(
    name="move",
    initial=RelocationState.PLANNED,
    transitions={
        (RelocationState.PLANNED, RelocationEvent.STOP): RelocationState.STOPPING,
        (RelocationState.PLANNED, RelocationEvent.DROP): RelocationState.DROPPED,
        (RelocationState.STOPPING, RelocationEvent.LEAVE): RelocationState.LANDING,
        (RelocationState.STOPPING, RelocationEvent.END): RelocationState.ENDED,
        (RelocationState.STOPPING, RelocationEvent.MISS): RelocationState.MISSED,
        (RelocationState.LANDING, RelocationEvent.LAND): RelocationState.LANDED,
        (RelocationState.LANDING, RelocationEvent.END): RelocationState.ENDED,
        (RelocationState.LANDING, RelocationEvent.MISS): RelocationState.MISSED,
    },
)
#: Relocations with cards in transit.
IN_MOTION = (RelocationState.STOPPING, RelocationState.LANDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelocationStatus:
    """The observed state of a claim that is relocated."""

    #: Its cards are released.
    released: bool
    #: The state of the claim that continues its workload; None while there is none.
    successor: ClaimState | None = None
    #: Its time is over.
    late: bool = False


def relocation_event(state: RelocationState, status: RelocationStatus) -> RelocationEvent | None:
    """Return what has happened to a relocation that has begun; None if nothing.

    An owner releases the cards and requests others in one transaction: a claim that is released and has no
    successor belongs to a workload that has finished.
    """
    if state is RelocationState.STOPPING and status.released:
        return RelocationEvent.END if status.successor is None else RelocationEvent.LEAVE
    if state is RelocationState.LANDING:
        if status.successor in (ClaimState.ADMITTED, ClaimState.REVOKING):
            return RelocationEvent.LAND
        if status.successor in (ClaimState.RELEASED, None):
            return RelocationEvent.END
    if state in IN_MOTION and status.late:
        return RelocationEvent.MISS
    return None


# -- Cards by name --


def assign_cards_to_relocations(
    moves: Sequence[Relocation],
    room: Sequence[ReplicaPlacement],
    snapshot: SchedulingSnapshot,
    *,
    chip: str,
) -> tuple[tuple[Relocation, ...], tuple[ReplicaPlacement, ...]]:
    """The relocations and the freed capacity with named cards, also where a node's plug-in chooses: any free one
    represents it.

    :param chip: of the freed capacity.
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
        free |= card_uids_of_replicas(move.source)
        settled_moves.append(replace(move, target=settle(move.target, move.chip)))
    return tuple(settled_moves), settle(room, chip)


# -- Whether the relocations are still possible --


def relocation_blockers(
    moves: Sequence[tuple[int, Relocation]],
    room: Iterable[str],
    snapshot: SchedulingSnapshot,
    *,
    nominees: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return why the relocations, each with its number, can no longer be made; empty if they can.

    :param room: uids of the cards that have to be free once all are made.
    :param nominees: cards that are nominated for one of those count as free.
    """
    return _RelocationChecker(snapshot, frozenset(nominees)).changes(moves, frozenset(room))


class _RelocationChecker:
    """The fleet as the relocations find it, one after the other."""

    def __init__(self, snapshot: SchedulingSnapshot, nominees: frozenset[str]) -> None:
        self._running = {running.uid: running for running in snapshot.running}
        self._nodes = {node.uid: node for node in snapshot.nodes}
        self._cards = {card.uid: card for node in snapshot.nodes for card in node.cards}
        self._nominees = nominees
        #: Cards that earlier relocations have freed, and taken.
        self._freed: set[str] = set()
        self._taken: set[str] = set()

    def changes(
        self, moves: Sequence[tuple[int, Relocation]], room: frozenset[str]
    ) -> tuple[str, ...]:
        found: list[str] = []
        for number, move in moves:
            for problem in self._check_relocation(move):
                reason = Reason(
                    "defragmentation.plan.relocation_outdated",
                    "relocation {number}: {reason}",
                    number=number,
                    reason=problem,
                )
                found.append(reason)
            self._freed |= card_uids_of_replicas(move.source)
            self._taken |= card_uids_of_replicas(move.target)
        for node in self._nodes.values():
            busy = [
                card.uid
                for card in node.cards
                if card.uid in room and not self._is_card_snapshot_free(card)
            ]
            if busy:
                reason = Reason(
                    "defragmentation.plan.capacity_outdated",
                    "the capacity to free: {reason}",
                    reason=_no_longer_free_reason(node, busy),
                )
                found.append(reason)
        return tuple(found)

    def _check_relocation(self, move: Relocation) -> list[str]:
        if blocker := self._workload_change_reason(move):
            return [blocker]
        return [
            problem for replica in move.target if (problem := self._target_blocker_reason(replica))
        ]

    def _workload_change_reason(self, move: Relocation) -> str:
        """What has become of it; empty where it is as it was."""
        running = self._running.get(move.claim)
        if running is None:
            return Reason("defragmentation.workload.ended", "the workload has ended or stopped")
        if not can_relocate(running):
            return Reason(
                "defragmentation.workload.not_movable",
                "the workload is being evicted or can no longer be relocated",
            )
        if _sorted_placements(running.replicas) != _sorted_placements(move.source):
            return Reason(
                "defragmentation.workload.cards_changed",
                "the workload uses different cards than before",
            )
        return ""

    def _target_blocker_reason(self, replica: ReplicaPlacement) -> str:
        """Why it cannot come there; empty where it can."""
        node = self._nodes.get(replica.node)
        if node is None:
            return Reason(
                "node.lookup.not_found", "node {node} no longer exists", node=replica.node
            )
        if not node.accepts_workloads:
            return Reason(
                "node.workloads.not_accepted",
                "node {node} no longer accepts workloads",
                node=node.name,
            )
        busy = [uid for uid in replica.cards if not self._is_card_uid_free(uid)]
        return _no_longer_free_reason(node, busy) if busy else ""

    def _is_card_uid_free(self, uid: str) -> bool:
        card = self._cards.get(uid)
        return card is not None and self._is_card_snapshot_free(card)

    def _is_card_snapshot_free(self, card: CardSnapshot) -> bool:
        if card.uid in self._taken or (
            card.nominated_for and card.nominated_for not in self._nominees
        ):
            return False
        return card.free or card.uid in self._freed


def _sorted_placements(
    replicas: Iterable[ReplicaPlacement],
) -> list[tuple[str, int, str, tuple[str, ...]]]:
    return sorted((each.role, each.index, each.node, each.cards) for each in replicas)


def _no_longer_free_reason(node: NodeSnapshot, uids: Sequence[str]) -> str:
    indices = ", ".join(str(card.index) for card in node.cards if card.uid in uids)
    if len(uids) == 1:
        return Reason(
            "placement.card.not_free",
            "card {index} of {node} is no longer free",
            index=indices,
            node=node.name,
        )
    return Reason(
        "placement.cards.not_free",
        "cards {indices} of {node} are no longer free",
        indices=indices,
        node=node.name,
    )


def card_uids_of_replicas(replicas: Iterable[ReplicaPlacement]) -> set[str]:
    """Return the uids of their cards; those that a node's plug-in chooses are not among them."""
    return {uid for replica in replicas for uid in replica.cards}


class CardOccupancy(StrEnum):
    """What is on a card that no relocation touches."""

    FREE = "free"
    OTHER = "other"
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRelocationPreview:
    """A node that relocations lead from or to; cards in index order."""

    node: str
    name: str
    #: For each card a ``CardOccupancy``, or the number of the relocation (from 1) that is on it.
    before: tuple[str, ...]
    after: tuple[str, ...]
    #: Positions of the cards that are part of the freed capacity.
    room: tuple[int, ...]


def preview_relocated_nodes(
    snapshot: SchedulingSnapshot, moves: Sequence[Relocation], room: Iterable[ReplicaPlacement]
) -> tuple[NodeRelocationPreview, ...]:
    """Return the touched nodes, before and after all relocations, in the order of the snapshot."""
    leaving = _relocation_numbers([move.source for move in moves])
    coming = _relocation_numbers([move.target for move in moves])
    reserved = card_uids_of_replicas(room)
    touched = {
        replica.node for move in moves for replica in (*move.source, *move.target) if replica.count
    } | {replica.node for replica in room if replica.count}
    numbers = {move.claim: str(number) for number, move in enumerate(moves, 1)}
    return tuple(
        _preview_relocated_node(node, leaving, coming, reserved, numbers)
        for node in snapshot.nodes
        if node.uid in touched
    )


def _relocation_numbers(places: Sequence[Sequence[ReplicaPlacement]]) -> dict[str, str]:
    """The number of the relocation on each card."""
    return {
        uid: str(number)
        for number, each in enumerate(places, 1)
        for uid in card_uids_of_replicas(each)
    }


def _preview_relocated_node(
    node: NodeSnapshot,
    leaving: Mapping[str, str],
    coming: Mapping[str, str],
    reserved: set[str],
    numbers: Mapping[str, str],
) -> NodeRelocationPreview:
    cards = sorted(node.cards, key=lambda card: card.index)
    before = []
    for card in cards:
        if card.held_by is not None:
            before.append(numbers.get(card.held_by, CardOccupancy.OTHER.value))
        else:
            before.append(CardOccupancy.FREE.value if card.free else CardOccupancy.UNUSABLE.value)
    after = [
        coming.get(card.uid) or (CardOccupancy.FREE.value if card.uid in leaving else was)
        for card, was in zip(cards, before, strict=True)
    ]
    return NodeRelocationPreview(
        node=node.uid,
        name=node.name,
        before=tuple(before),
        after=tuple(after),
        room=tuple(place for place, card in enumerate(cards) if card.uid in reserved),
    )
