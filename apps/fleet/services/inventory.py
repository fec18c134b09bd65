"""Inventory of a cluster: make the rows of its nodes and cards match what it reports."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from apps.fleet.models import Card, Cluster, Node
from apps.fleet.selectors import card_localities
from apps.fleet.services.card_availability import UNREADY
from apps.fleet.services.clusters import QUEUE_SYNC_FAILED
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.topology import format_card_groups, nic_groups, numa_groups
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.ports.chips import NICS, NUMA, RINGS
from controlplane.ports.clusters import ObservedCard, ObservedNode

UNSEEN = Reason("card.state.not_reported", "the cluster no longer reports the card")
UNHEALTHY = Reason("card.state.unhealthy", "the cluster reports the card as unhealthy")
TAKEN = Reason("card.state.external_workload", "the card is in use by a workload outside Ninefold")
PARTITIONED = Reason(
    "card.state.partitioned", "the card is partitioned into slices, which are allocated one by one"
)
#: Columns of a card that follow what its cluster reports.
_OBSERVED = ("chip", "memory", "serial", "state", "state_reason", "parent_id")


@transaction.atomic
def inventory_record(
    *, cluster: Cluster, nodes: Sequence[ObservedNode], isolation: str, at: datetime
) -> None:
    """Make rows match the report of the cluster. What it no longer reports becomes unknown, not deleted."""
    lock_in_transaction(AdvisoryLock.SYNC_INVENTORY, cluster.pk)
    row = Cluster.objects.filter(pk=cluster.pk)
    if not row.exists():
        # It was removed meanwhile.
        return
    # Before any node, and in the lock order of admissions, which reach nodes through their cards. Locked, so
    # that a concurrent decision of an operator is not overwritten.
    locked = Card.objects.select_for_update(no_key=True, of=("self",))
    cards = list(locked.filter(node__cluster=cluster).order_by("uid"))
    _record_cards(cards, _record_nodes(cluster, nodes, at=at))
    row.update(last_seen_at=at, isolation=isolation)
    # An error without a code is text of an adapter; SQL neither includes nor excludes it by its code.
    of_inventory = Q(error__code__isnull=True) | ~Q(error__code=QUEUE_SYNC_FAILED)
    row.filter(of_inventory).exclude(error="").update(error="")


def _record_nodes(
    cluster: Cluster, nodes: Sequence[ObservedNode], *, at: datetime
) -> list[tuple[Node, ObservedNode]]:
    """The row of each node that is seen."""
    current = Node.objects.filter(cluster=cluster)
    known = {node.name: node for node in current}
    fresh, rows = [], []
    for seen in nodes:
        node = known.pop(seen.name, None)
        if node is None:
            node = Node(cluster=cluster, name=seen.name, last_seen_at=at)
            for name, value in _observed_node_columns(node, seen).items():
                setattr(node, name, value)
            fresh.append(node)
        else:
            _update_node(node, seen)
        rows.append((node, seen))
    Node.objects.bulk_create(fresh)
    current.filter(name__in=[seen.name for seen in nodes]).update(last_seen_at=at)
    if any(node.ready for node in known.values()):
        current.filter(name__in=known).update(ready=False)
    return rows


def _update_node(node: Node, seen: ObservedNode) -> None:
    changed = {
        name: value
        for name, value in _observed_node_columns(node, seen).items()
        if getattr(node, name) != value
    }
    if changed:
        Node.objects.filter(pk=node.pk).update(**changed)


def _observed_node_columns(node: Node, seen: ObservedNode) -> dict[str, Any]:
    return {
        "cpu": seen.capacity.cpu,
        "memory": seen.capacity.memory,
        "ready": seen.ready,
        "labels": _placement_labels(node, seen),
    }


def _placement_labels(node: Node, seen: ObservedNode) -> dict[str, str]:
    """Return the labels of the node, with card groups where no label has them, for placement."""
    labels = dict(seen.labels or {})
    cards = card_localities(node)
    observed = {RINGS: seen.rings, NUMA: numa_groups(cards), NICS: nic_groups(cards)}
    for name, groups in observed.items():
        if groups:
            labels.setdefault(name, format_card_groups(groups))
    return labels


def _record_cards(cards: Sequence[Card], nodes: Sequence[tuple[Node, ObservedNode]]) -> None:
    """``cards`` are all that the cluster's rows have, locked."""
    rows = {(card.node_id, card.index): card for card in cards}
    unseen = dict(rows)
    # Cards first, then their slices.
    for are_slices in (False, True):
        fresh = []
        for node, seen in nodes:
            for observed in seen.cards:
                if (observed.parent is not None) is not are_slices:
                    continue
                card = unseen.pop((node.pk, observed.index), None)
                parent = None if observed.parent is None else rows.get((node.pk, observed.parent))
                if card is None:
                    card = Card(node=node, index=observed.index, parent=parent)
                    if parent is not None and not _is_state_from_observation(parent):
                        # A decision on the card is one on each of its slices.
                        card.state, card.state_reason = parent.state, parent.state_reason
                    _update_card(card, observed)
                    fresh.append(card)
                    continue
                before = _observed_card_columns(card)
                card.parent = parent
                _update_card(card, observed)
                if _observed_card_columns(card) != before:
                    card.save(update_fields=_OBSERVED)
        Card.objects.bulk_create(fresh)
        rows |= {(card.node_id, card.index): card for card in fresh}
    missing = [card.pk for card in unseen.values() if card.state == CardState.USABLE]
    if missing:
        Card.objects.filter(pk__in=missing).update(state=CardState.UNKNOWN, state_reason=UNSEEN)


def _update_card(card: Card, observed: ObservedCard) -> None:
    card.chip, card.memory = observed.chip, observed.memory
    # A cluster without serial numbers does not clear the one from metrics.
    card.serial = observed.serial or card.serial
    # Only states set by observation are cleared; a decision of an operator stays.
    if card.state == CardState.USABLE or _is_state_from_observation(card):
        card.state, card.state_reason = _state_of_observed_card(observed)


def _observed_card_columns(card: Card) -> tuple[object, ...]:
    return tuple(getattr(card, name) for name in _OBSERVED)


def _state_of_observed_card(observed: ObservedCard) -> tuple[CardState, str]:
    """Return state and reason of an observed card; cards used by other workloads are unknown."""
    if not observed.healthy:
        return CardState.UNKNOWN, UNHEALTHY
    if observed.partitioned:
        return CardState.UNKNOWN, PARTITIONED
    if observed.taken:
        return CardState.UNKNOWN, TAKEN
    return CardState.USABLE, ""


def _is_state_from_observation(card: Card) -> bool:
    return card.state == CardState.UNKNOWN and card.state_reason in (
        UNSEEN,
        UNHEALTHY,
        TAKEN,
        PARTITIONED,
        UNREADY,
    )
