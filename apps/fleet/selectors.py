"""Questions about the fleet, and the adapters of its clusters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings
from django.db.models import Count, Q, QuerySet

from apps.fleet.models import Card, Cluster, Node
from controlplane.domain.accelerators import CardState, Chip
from controlplane.ports import registry
from controlplane.ports.chips import VendorProfile
from controlplane.ports.clusters import Cluster as ClusterAdapter

#: Options whose value comes from this installation rather than from the row.
_LOCAL = "local"


@lru_cache(maxsize=32)
def _adapter(kind: str, options: str) -> ClusterAdapter:
    return registry.cluster(kind, json.loads(options))


def cluster_adapter(cluster: Cluster) -> ClusterAdapter:
    """The adapter of that cluster, kept for as long as its options stay the same."""
    options = dict(cluster.options)
    if cluster.kind == _LOCAL:
        options.setdefault("home", str(settings.NINEFOLD_HOME))
        if settings.NINEFOLD_LOCAL_CARDS:
            options.setdefault("cards", settings.NINEFOLD_LOCAL_CARDS)
    return _adapter(cluster.kind, json.dumps(options, sort_keys=True))


def nodes_with_cards() -> QuerySet[Node]:
    return Node.objects.select_related("cluster").prefetch_related("cards")


def nodes() -> QuerySet[Node]:
    return Node.objects.select_related("cluster")


def cards() -> QuerySet[Card]:
    return Card.objects.select_related("node")


def cards_by_chip() -> dict[str, dict[str, int]]:
    """``{chip: {"total": n, "usable": m}}`` over the whole fleet."""
    rows = Card.objects.values("chip").annotate(
        total=Count("id"), usable=Count("id", filter=Q(state=CardState.USABLE))
    )
    return {row["chip"]: {"total": row["total"], "usable": row["usable"]} for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownChip:
    """A chip that an installed plug-in knows, and how many of it the fleet has."""

    chip: Chip
    profile: VendorProfile
    #: Cards in the whole fleet, and how many of these take new work.
    cards: int
    usable: int


def chips_known() -> tuple[KnownChip, ...]:
    """Those that the fleet has first, the most cards before; then the others as their plug-ins list them."""
    counts = cards_by_chip()
    none = {"total": 0, "usable": 0}
    plugins = registry.chip_plugins()
    known = (
        KnownChip(
            chip=chip,
            profile=plugins[chip.vendor].profile(),
            cards=counts.get(chip.name, none)["total"],
            usable=counts.get(chip.name, none)["usable"],
        )
        for chip in registry.chips().values()
    )
    return tuple(sorted(known, key=lambda one: -one.cards))


def chip_known(name: str) -> KnownChip | None:
    """The chip of that name or alias; None if no plug-in knows it."""
    chip = registry.chip_called(name)
    if chip is None:
        return None
    return next(one for one in chips_known() if one.chip.name == chip.name)


def clusters_with(chip: str) -> list[Cluster]:
    """Those that have cards of that chip, by name."""
    return list(Cluster.objects.filter(nodes__cards__chip=chip).distinct().order_by("name"))


def clusters_without_images(chip: str) -> list[str]:
    """Names of the clusters that have cards of the chip, if none of them starts containers."""
    found = clusters_with(chip)
    if any(cluster_adapter(cluster).runs_images for cluster in found):
        return []
    return [cluster.name for cluster in found]


def clusters() -> QuerySet[Cluster]:
    return Cluster.objects.annotate(
        node_count=Count("nodes", distinct=True), card_count=Count("nodes__cards")
    )
