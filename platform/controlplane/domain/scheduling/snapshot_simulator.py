"""Simulation of a snapshot over time: claims arrive, start, stop and end, and each change gives the next snapshot.

Forecasts and replays run the real ``plan`` again and again in virtual time; this is the state around it. It
records changes as the product's database does: a card that was freed for a claim stays nominated for it, and a
claim that is being evicted holds its cards until it has stopped.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from controlplane.domain.quotas.claims import WHOLE_CARD, RoleShape
from controlplane.domain.scheduling.plans import ClaimEviction, ClaimPlacement, cards_of_replicas
from controlplane.domain.scheduling.snapshots import (
    CardSnapshot,
    ClaimSnapshot,
    NodeSnapshot,
    ReplicaPlacement,
    RunningClaim,
    SchedulingSnapshot,
)


class SnapshotSimulator:
    """The state of one snapshot, changed step by step; the snapshot itself is unchanged."""

    def __init__(self, snapshot: SchedulingSnapshot) -> None:
        self._nodes = {node.uid: node for node in snapshot.nodes}
        self._queues = dict(snapshot.queues)
        self._claims = {claim.uid: claim for claim in snapshot.claims}
        self._running = {running.uid: running for running in snapshot.running}
        #: Cards that nodes chose, by claim, role and index.
        self._chosen: dict[tuple[str, str, int], set[str]] = {}
        #: Nodes with cards that are nominated, by whom they are for.
        self._nominated: dict[str, set[str]] = {}
        for node in snapshot.nodes:
            for card in node.cards:
                if card.nominated_for:
                    self._nominated.setdefault(card.nominated_for, set()).add(node.uid)

    @property
    def waiting(self) -> tuple[ClaimSnapshot, ...]:
        return tuple(self._claims.values())

    @property
    def running(self) -> tuple[RunningClaim, ...]:
        return tuple(self._running.values())

    def snapshot(self) -> SchedulingSnapshot:
        """What the scheduler would see now."""
        return SchedulingSnapshot(
            nodes=tuple(self._nodes.values()),
            claims=self.waiting,
            queues=dict(self._queues),
            running=self.running,
        )

    def claim(self, uid: str) -> ClaimSnapshot:
        """Return the pending claim.

        :raises KeyError: if none of that uid does.
        """
        return self._claims[uid]

    def runs(self, uid: str) -> RunningClaim | None:
        """Return the claim if it holds cards; None if it does not."""
        return self._running.get(uid)

    # -- What claims do --

    def submit(self, claim: ClaimSnapshot) -> None:
        self._claims[claim.uid] = claim

    def withdraw(self, uid: str) -> None:
        """Remove the pending claim; cards nominated for it become available."""
        del self._claims[uid]
        self.release_nominated(uid)

    def release_nominated(self, uid: str) -> bool:
        """Release the cards that are nominated for the claim; return whether there were any."""
        names = sorted(self._nominated.pop(uid, ()))
        for name in names:
            node = self._nodes[name]
            self._nodes[name] = replace(
                node,
                cards=tuple(
                    replace(card, nominated_for="") if card.nominated_for == uid else card
                    for card in node.cards
                ),
            )
        return bool(names)

    def start(
        self, placement: ClaimPlacement, *, at: datetime, ends_at: datetime | None = None
    ) -> tuple[str, ...]:
        """Allocate the claim's cards; return their uids, also where the node chooses."""
        claim = self._claims.pop(placement.claim)
        self.release_nominated(claim.uid)
        roles = {role.name: role for role in claim.shape.roles}
        held: list[str] = []
        for replica in placement.replicas:
            held += self._allocate_replica(replica, roles[replica.role], placement.chip, claim.uid)
        self._running[claim.uid] = RunningClaim(
            **claim.traits(),
            chip=placement.chip,
            admitted_at=at,
            replicas=placement.replicas,
            ends_at=ends_at,
            chips=claim.chips,
        )
        self._update_queue_usage(self._running[claim.uid], 1)
        return tuple(held)

    def revoke(self, revocation: ClaimEviction) -> None:
        """Mark the claim as being evicted; it holds its cards until it ``end``s."""
        self._running[revocation.claim] = replace(
            self._running[revocation.claim], revoking=True, revoked_for=revocation.beneficiary
        )

    def save(self, uid: str, *, at: datetime) -> None:
        """The claim wrote a checkpoint."""
        self._running[uid] = replace(self._running[uid], checkpointed_at=at)

    def end(self, uid: str) -> tuple[str, ...]:
        """Release everything that the claim holds; return the uids of its cards.

        Cards that it was evicted for are nominated for that claim as long as it is pending.
        """
        running = self._running.pop(uid)
        nominee = running.revoked_for if running.revoked_for in self._claims else ""
        roles = {role.name: role for role in running.shape.roles}
        released: list[str] = []
        for replica in running.replicas:
            released += self._release_replica(replica, roles[replica.role], uid, nominee)
        self._update_queue_usage(running, -1)
        return tuple(released)

    # -- What operators and hardware do --

    def change_node(self, node: NodeSnapshot) -> None:
        """Another view of a node of that uid, such as a cordoned one or one with a faulty card."""
        self._nodes[node.uid] = node

    # -- The books --

    def _allocate_replica(
        self, replica: ReplicaPlacement, role: RoleShape, chip: str, uid: str
    ) -> list[str]:
        node = self._nodes[replica.node]
        taken = set(replica.cards)
        if not taken and replica.count:
            taken = _cards_chosen_by_node(node, role, chip)
            self._chosen[uid, replica.role, replica.index] = taken
        self._nodes[node.uid] = replace(
            node,
            cards=tuple(
                _card_after_allocation(card, role, uid) if card.uid in taken else card
                for card in node.cards
            ),
            allocated=node.allocated.plus(role.limits),
        )
        return sorted(taken)

    def _release_replica(
        self, replica: ReplicaPlacement, role: RoleShape, uid: str, nominee: str
    ) -> list[str]:
        node = self._nodes.get(replica.node)
        if node is None:
            return []
        named = set(replica.cards) or self._chosen.pop((uid, replica.role, replica.index), set())
        if not named:
            # It was running before the simulation began; then the cards of the snapshot are used.
            held = [card.uid for card in node.cards if card.held_by == uid]
            named = set(held[: replica.count])
        released = [card.uid for card in node.cards if card.uid in named]
        if nominee and released:
            self._nominated.setdefault(nominee, set()).add(node.uid)
        self._nodes[node.uid] = replace(
            node,
            cards=tuple(
                _card_after_release(card, role, nominee) if card.uid in named else card
                for card in node.cards
            ),
            allocated=node.allocated.plus(role.limits.times(-1)),
        )
        return released

    def _update_queue_usage(self, running: RunningClaim, sign: int) -> None:
        queue, chip = self._queues[running.queue], running.chip
        # Only single cards are shared: what whole ones do not account for are shares.
        sharing = {role.name for role in running.shape.roles if role.share < WHOLE_CARD}
        whole = cards_of_replicas(each for each in running.replicas if each.role not in sharing)
        shared = running.amount - whole * WHOLE_CARD
        self._queues[queue.uid] = replace(
            queue,
            used={**queue.used, chip: queue.used.get(chip, 0) + sign * whole},
            shared={**queue.shared, chip: queue.shared.get(chip, 0) + sign * shared}
            if shared
            else queue.shared,
        )


def requeued_claim(running: RunningClaim, *, at: datetime) -> ClaimSnapshot:
    """Return the claim as it is after an eviction: in its former position, with its remaining work.

    A claim that should have ended already only repeats what it loses.
    """
    left = None
    if running.ends_at is not None:
        here = max(running.ends_at - at, timedelta(0)) + running.lost_at(at)
        left = here * running.speeds.get(running.chip, 1.0)
    return ClaimSnapshot(
        **running.traits(),
        chips=running.chips or (running.chip,),
        created_at=running.admitted_at,
        runtime=left,
    )


def _cards_chosen_by_node(node: NodeSnapshot, role: RoleShape, chip: str) -> set[str]:
    """Cards that a node which chooses itself gives to one replica."""
    if role.share < WHOLE_CARD:
        fitting = [
            card
            for card in node.cards
            if card.chip == chip and card.free and card.shared + role.share <= WHOLE_CARD
        ]
        return {max(fitting, key=lambda card: card.shared).uid} if fitting else set()
    untouched = [card for card in node.cards if card.free and not card.shared]
    return {card.uid for card in node.pick(untouched, chip=chip, count=role.cards) or ()}


def _card_after_allocation(card: CardSnapshot, role: RoleShape, uid: str) -> CardSnapshot:
    if role.share < WHOLE_CARD:
        return replace(card, shared=card.shared + role.share)
    return replace(card, held_by=uid)


def _card_after_release(card: CardSnapshot, role: RoleShape, nominee: str) -> CardSnapshot:
    if role.share < WHOLE_CARD:
        return replace(card, shared=card.shared - role.share, nominated_for=nominee)
    return replace(card, held_by=None, nominated_for=nominee)
