"""What the scheduler sees of the rows, as values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from django.db.models import QuerySet

from apps.fleet.models import Node
from apps.quotas.models import Allocation, Claim, Queue
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import ClaimState, GangShape
from controlplane.domain.network import domains_in
from controlplane.domain.quotas import Entitlement
from controlplane.domain.resources import Bytes, Millicpu, Resources
from controlplane.domain.scheduling.plans import ReplicaPlacement
from controlplane.domain.scheduling.snapshots import (
    Binding,
    CardView,
    ClaimView,
    NodeView,
    QueueView,
    RunningView,
    Snapshot,
)
from controlplane.ports.registry import geometries_on

HOLDING = (ClaimState.ADMITTED, ClaimState.REVOKING)


def snapshot() -> Snapshot:
    """Everything the scheduler needs. Call it in one short transaction."""
    running = _running()
    holders = {
        card: claim.uid for claim in running for replica in claim.replicas for card in replica.cards
    }
    promised = _promised(running)
    nodes = tuple(_node(node, holders, promised) for node in _nodes())
    return Snapshot(nodes=nodes, claims=_waiting(), queues=_queues(running, nodes), running=running)


def _nodes() -> QuerySet[Node]:
    return Node.objects.select_related("cluster").prefetch_related("cards").order_by("name", "id")


def _node(node: Node, holders: Mapping[str, str], promised: Mapping[str, Resources]) -> NodeView:
    cards = sorted(node.cards.all(), key=lambda card: card.index)
    return NodeView(
        uid=node.uid,
        name=node.name,
        cluster=node.cluster.uid,
        cards=tuple(
            CardView(
                uid=card.uid,
                index=card.index,
                chip=card.chip,
                state=CardState(card.state),
                held_by=holders.get(card.uid),
            )
            for card in cards
        ),
        capacity=Resources(cpu=Millicpu(node.cpu), memory=Bytes(node.memory)),
        promised=promised.get(node.uid, Resources()),
        schedulable=node.ready and not node.cordoned,
        geometries=geometries_on(node.labels, {card.chip for card in cards}),
        domains=domains_in(node.labels),
        labels=node.labels,
        binding=Binding(node.cluster.binding),
    )


def _waiting() -> tuple[ClaimView, ...]:
    return tuple(
        ClaimView(
            uid=claim.uid,
            queue=claim.queue.uid,
            shape=GangShape.from_json(claim.shape),
            chips=tuple(claim.chips),
            priority=claim.priority,
            created_at=claim.created_at,
        )
        for claim in Claim.objects.filter(state=ClaimState.PENDING)
        .select_related("queue")
        .order_by("id")
    )


def _running() -> tuple[RunningView, ...]:
    held: dict[int, dict[tuple[str, int], list[str]]] = defaultdict(lambda: defaultdict(list))
    for claim, role, replica, card in (
        Allocation.objects.filter(released_at=None)
        .order_by("card__index")
        .values_list("claim_id", "role", "replica", "card__uid")
    ):
        held[claim][role, replica].append(card)
    return tuple(
        RunningView(
            uid=claim.uid,
            queue=claim.queue.uid,
            shape=GangShape.from_json(claim.shape),
            chip=claim.chip,
            chips=tuple(claim.chips),
            priority=claim.priority,
            admitted_at=claim.admitted_at or claim.created_at,
            replicas=_replicas(claim, held[claim.pk]),
            # Owners cannot say yet that they would go on later.
            preemptible=False,
            checkpointed_at=claim.checkpointed_at,
            revoking=claim.state == ClaimState.REVOKING,
        )
        for claim in Claim.objects.filter(state__in=HOLDING).select_related("queue").order_by("id")
    )


def _replicas(
    claim: Claim, held: Mapping[tuple[str, int], Sequence[str]]
) -> tuple[ReplicaPlacement, ...]:
    return tuple(
        ReplicaPlacement(
            role=replica["role"],
            index=replica["index"],
            node=replica["node"],
            cards=tuple(held.get((replica["role"], replica["index"]), ())),
            count=len(replica["cards"]),
        )
        for replica in claim.placement
    )


def _promised(running: Sequence[RunningView]) -> Mapping[str, Resources]:
    """CPU and memory that claims hold, by node uid."""
    promised: dict[str, Resources] = defaultdict(Resources)
    for claim in running:
        limits = claim.shape.limits
        for replica in claim.replicas:
            promised[replica.node] = promised[replica.node].plus(limits[replica.role])
    return promised


def _queues(running: Sequence[RunningView], nodes: Sequence[NodeView]) -> Mapping[str, QueueView]:
    chips = {card.uid: card.chip for node in nodes for card in node.cards}
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for claim in running:
        used[claim.queue].update(chips[card] for each in claim.replicas for card in each.cards)
    return {
        queue.uid: QueueView(
            uid=queue.uid,
            name=queue.name,
            parent=queue.parent.uid if queue.parent else None,
            entitlements={chip: Entitlement(cap=cap) for chip, cap in queue.caps.items()},
            used=used[queue.uid],
            open=queue.open,
        )
        for queue in Queue.objects.select_related("parent")
    }
