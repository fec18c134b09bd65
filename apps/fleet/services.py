"""Changes to clusters, nodes and cards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from apps.fleet.models import Card, Cluster, Node
from controlplane.domain.accelerators import CardState
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction
from controlplane.ports.clusters import ObservedNode

UNSEEN = "the cluster no longer reports it"
UNHEALTHY = "the cluster reports it as not healthy"


@transaction.atomic
def inventory_record(
    *, cluster: Cluster, nodes: Sequence[ObservedNode], isolation: str, at: datetime
) -> None:
    """Make rows match what the cluster reports. What it no longer reports becomes unknown, not deleted."""
    lock_in_transaction(AdvisoryLock.SYNC_INVENTORY, cluster.pk)
    for seen in nodes:
        node, _ = Node.objects.update_or_create(
            cluster=cluster,
            name=seen.name,
            defaults={
                "cpu": seen.capacity.cpu,
                "memory": seen.capacity.memory,
                "ready": seen.ready,
                "labels": dict(seen.labels or {}),
                "last_seen_at": at,
            },
        )
        _record_cards(node, seen)
    names = [node.name for node in nodes]
    gone = Node.objects.filter(cluster=cluster).exclude(name__in=names)
    gone.update(ready=False)
    Card.objects.filter(node__in=gone, state=CardState.USABLE).update(
        state=CardState.UNKNOWN, state_reason=UNSEEN
    )
    Cluster.objects.filter(pk=cluster.pk).update(last_seen_at=at, trouble="", isolation=isolation)


def _record_cards(node: Node, seen: ObservedNode) -> None:
    known = {card.index: card for card in node.cards.filter(parent=None)}
    for observed in seen.cards:
        card = known.pop(observed.index, None)
        if card is None:
            card = Card(node=node, index=observed.index)
        card.chip, card.memory, card.serial = observed.chip, observed.memory, observed.serial
        # Only the observation's own states are taken back; an operator's decision stays.
        if not observed.healthy and card.state == CardState.USABLE:
            card.state, card.state_reason = CardState.UNKNOWN, UNHEALTHY
        elif observed.healthy and card.state_reason in (UNSEEN, UNHEALTHY):
            card.state, card.state_reason = CardState.USABLE, ""
        card.save()
    missing = [card.pk for card in known.values() if card.state == CardState.USABLE]
    Card.objects.filter(pk__in=missing).update(state=CardState.UNKNOWN, state_reason=UNSEEN)


def cluster_in_trouble(*, cluster: Cluster, trouble: str) -> None:
    """Remember why the last look failed. Silence isolates nothing by itself."""
    Cluster.objects.filter(pk=cluster.pk).update(trouble=trouble)


def cluster_ensure(*, name: str, kind: str) -> Cluster:
    """The cluster of that name, created if absent."""
    cluster, _ = Cluster.objects.get_or_create(name=name, defaults={"kind": kind})
    return cluster
