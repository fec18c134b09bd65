"""One scheduling cycle in steps over a snapshot.

1. order the waiting claims: priority, then age;
2. for each, take its acceptable chips in order of preference;
3. check the queue: open, and under its cap;
4. place every replica of the gang in one cluster, first fit over nodes in name order, or none of it; the
   cards of a replica stay inside a ring and its pairs together, as the node's geometry wants it;
5. mark what was taken, so that the next claim sees it;
6. explain each choice and each refusal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from controlplane.domain.claims import GangShape, RoleShape
from controlplane.domain.resources import Resources
from controlplane.domain.scheduling.explain import (
    explain_cap,
    explain_closed,
    explain_no_room,
    explain_placement,
)
from controlplane.domain.scheduling.plans import Placement, Plan, Refusal, ReplicaPlacement
from controlplane.domain.scheduling.snapshots import CardView, ClaimView, NodeView, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What may be tuned. Named values rather than flags, so that a plan can be repeated."""

    #: Most claims to place in one cycle; keeps a commit short.
    placements_per_cycle: int = 200


@dataclass(slots=True)
class _Ledger:
    """What is left of the snapshot while the plan grows."""

    free: dict[str, list[CardView]]
    room: dict[str, Resources]
    used: dict[str, Counter[str]]
    taken: list[tuple[str, tuple[CardView, ...], Resources]] = field(default_factory=list)

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Ledger:
        return cls(
            free={
                node.uid: [card for card in node.cards if card.free] if node.schedulable else []
                for node in snapshot.nodes
            },
            room={node.uid: _left(node) for node in snapshot.nodes},
            used={uid: Counter(queue.used) for uid, queue in snapshot.queues.items()},
        )

    def take(self, node: NodeView, role: RoleShape, chip: str) -> tuple[CardView, ...] | None:
        """Cards for one replica on that node, or None if it does not fit there."""
        if not node.schedulable or not _fits(role.limits, self.room[node.uid]):
            return None
        chosen = node.pick(self.free[node.uid], chip=chip, count=role.cards)
        if chosen is None:
            return None
        for card in chosen:
            self.free[node.uid].remove(card)
        self.room[node.uid] = _minus(self.room[node.uid], role.limits)
        self.taken.append((node.uid, chosen, role.limits))
        return chosen

    def undo(self) -> None:
        """Give back what was taken since the last ``keep``."""
        for node, cards, limits in reversed(self.taken):
            self.free[node] = sorted([*self.free[node], *cards], key=lambda card: card.index)
            self.room[node] = self.room[node].plus(limits)
        self.taken.clear()

    def keep(self, claim: ClaimView, chip: str) -> None:
        self.used.setdefault(claim.queue, Counter())[chip] += claim.shape.cards
        self.taken.clear()


def plan(snapshot: Snapshot, policy: Policy, at: datetime) -> Plan:  # noqa: ARG001 - part of the contract
    """Decide for every waiting claim; the same snapshot always gives the same plan."""
    ledger = _Ledger.of(snapshot)
    placements: list[Placement] = []
    refusals: list[Refusal] = []
    for claim in _ordered(snapshot.claims):
        if len(placements) >= policy.placements_per_cycle:
            break
        outcome = _place(claim, snapshot, ledger)
        if isinstance(outcome, Placement):
            placements.append(outcome)
        else:
            refusals.append(outcome)
    return Plan(placements=tuple(placements), refusals=tuple(refusals))


def _ordered(claims: tuple[ClaimView, ...]) -> list[ClaimView]:
    return sorted(claims, key=lambda claim: (-claim.priority, claim.created_at, claim.uid))


def _place(claim: ClaimView, snapshot: Snapshot, ledger: _Ledger) -> Placement | Refusal:
    queue = snapshot.queues[claim.queue]
    if not queue.open:
        return explain_closed(claim, queue)
    refusal: Refusal | None = None
    for chip in claim.chips:
        used = ledger.used[claim.queue][chip]
        cap = queue.caps.get(chip)
        if cap is not None and used + claim.shape.cards > cap:
            refusal = refusal or explain_cap(claim, queue, chip, used=used, cap=cap)
            continue
        replicas = _place_gang(claim, chip, snapshot, ledger)
        if replicas is not None:
            ledger.keep(claim, chip)
            return explain_placement(claim, chip, replicas, snapshot)
        refusal = refusal or _explain(claim, chip, snapshot, ledger)
    if refusal is None:
        raise ValueError(f"claim {claim.uid} accepts no chip")
    return refusal


def _explain(claim: ClaimView, chip: str, snapshot: Snapshot, ledger: _Ledger) -> Refusal:
    """Why the gang found no room: would its cards alone have fitted?"""
    unlimited = replace(
        claim,
        shape=GangShape(
            roles=tuple(replace(role, limits=Resources()) for role in claim.shape.roles)
        ),
    )
    cards_fit = _place_gang(unlimited, chip, snapshot, ledger) is not None
    ledger.undo()
    return explain_no_room(
        claim, chip, snapshot, ledger.free, ledger.room, cards_would_fit=cards_fit
    )


def _place_gang(
    claim: ClaimView, chip: str, snapshot: Snapshot, ledger: _Ledger
) -> tuple[ReplicaPlacement, ...] | None:
    """In the first cluster that has room for all of it: one Launch runs in one cluster."""
    for cluster in dict.fromkeys(node.cluster for node in snapshot.nodes):
        nodes = tuple(node for node in snapshot.nodes if node.cluster == cluster)
        replicas = _place_on(nodes, claim, chip, ledger)
        if replicas is not None:
            return replicas
    return None


def _place_on(
    nodes: tuple[NodeView, ...], claim: ClaimView, chip: str, ledger: _Ledger
) -> tuple[ReplicaPlacement, ...] | None:
    replicas: list[ReplicaPlacement] = []
    for role, index in _members(claim):
        for node in nodes:
            cards = ledger.take(node, role, chip)
            if cards is not None:
                replicas.append(
                    ReplicaPlacement(
                        role=role.name,
                        index=index,
                        node=node.uid,
                        cards=tuple(card.uid for card in cards),
                    )
                )
                break
        else:
            ledger.undo()
            return None
    return tuple(replicas)


def _members(claim: ClaimView) -> Iterator[tuple[RoleShape, int]]:
    for role in claim.shape.roles:
        for index in range(role.replicas):
            yield role, index


def _left(node: NodeView) -> Resources:
    return _minus(node.capacity, node.promised)


def _minus(room: Resources, taken: Resources) -> Resources:
    return room.plus(taken.times(-1))


def _fits(wanted: Resources, room: Resources) -> bool:
    """CPU is shared rather than owned, so only memory can refuse; 0 asks for none."""
    return not wanted.memory or wanted.memory <= room.memory
