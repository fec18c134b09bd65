"""Changes to clusters, nodes and cards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import audit
from apps.fleet.models import Card, Cluster, Node
from apps.fleet.selectors import require_operator
from apps.fleet.services.copies import STALE
from controlplane.domain.accelerators import CardState
from controlplane.domain.geometry import text_of
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction
from controlplane.ports.clusters import ObservedCard, ObservedNode
from controlplane.ports.discovery import RINGS

UNSEEN = "the cluster no longer reports it"
UNHEALTHY = "the cluster reports it as not healthy"
TAKEN = "work that is not ours has it"


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
                "labels": _labels(seen),
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
    row = Cluster.objects.filter(pk=cluster.pk)
    row.update(last_seen_at=at, isolation=isolation)
    row.exclude(trouble__startswith=STALE).update(trouble="")


def _labels(seen: ObservedNode) -> dict[str, str]:
    """Labels of the node; what the cluster saw of its rings goes beside them, where placement reads it."""
    labels = dict(seen.labels or {})
    if seen.rings:
        labels.setdefault(RINGS, text_of(seen.rings))
    return labels


def _record_cards(node: Node, seen: ObservedNode) -> None:
    # Locked, so that an operator's decision made meanwhile is not written over.
    cards = node.cards.select_for_update(no_key=True).filter(parent=None).order_by("uid")
    known = {card.index: card for card in cards}
    for observed in seen.cards:
        card = known.pop(observed.index, None)
        fresh = card is None
        if card is None:
            card = Card(node=node, index=observed.index)
        before = _observed_columns(card)
        card.chip, card.memory, card.serial = observed.chip, observed.memory, observed.serial
        # Only the observation's own states are taken back; an operator's decision stays.
        if card.state == CardState.USABLE or _is_from_observation(card):
            card.state, card.state_reason = _state_of(observed)
        if fresh or _observed_columns(card) != before:
            card.save()
    missing = [card.pk for card in known.values() if card.state == CardState.USABLE]
    Card.objects.filter(pk__in=missing).update(state=CardState.UNKNOWN, state_reason=UNSEEN)


def _observed_columns(card: Card) -> tuple[object, ...]:
    return card.chip, card.memory, card.serial, card.state, card.state_reason


def _state_of(observed: ObservedCard) -> tuple[CardState, str]:
    """What is taken is unknown to us: the plug-in that gave it away keeps it, and gives out all others."""
    if not observed.healthy:
        return CardState.UNKNOWN, UNHEALTHY
    if observed.taken:
        return CardState.UNKNOWN, TAKEN
    return CardState.USABLE, ""


def _is_from_observation(card: Card) -> bool:
    return card.state == CardState.UNKNOWN and card.state_reason in (UNSEEN, UNHEALTHY, TAKEN)


@transaction.atomic
def node_cordon(*, node: Node, cordoned: bool, actor: User) -> bool:
    """Let no new work come to a node, or let it come again; what runs there goes on.

    Says whether that changed anything.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_operator(actor)
    if not Node.objects.filter(pk=node.pk).exclude(cordoned=cordoned).update(cordoned=cordoned):
        return False
    action = "node.cordon" if cordoned else "node.uncordon"
    audit(actor=actor, action=action, uid=node.uid, name=str(node), cluster=node.cluster.name)
    return True


def cluster_in_trouble(*, cluster: Cluster, trouble: str) -> None:
    """Remember why the last look failed. Silence isolates nothing by itself."""
    Cluster.objects.filter(pk=cluster.pk).update(trouble=trouble)


def cluster_ensure(*, name: str, kind: str) -> Cluster:
    """The cluster of that name, created if absent."""
    cluster, _ = Cluster.objects.get_or_create(name=name, defaults={"kind": kind})
    return cluster
