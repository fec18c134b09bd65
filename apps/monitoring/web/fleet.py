"""The fleet at a glance: what can be used, what is broken, what is wasted, and who holds what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy

from apps.accounts.web.requests import AuthenticatedRequest
from apps.fleet import selectors as fleet
from apps.fleet.models import Card, Node
from apps.monitoring.selectors import fleet_figures as figures
from apps.monitoring.selectors.fault_rows import faults_worst
from apps.monitoring.selectors.fleet_figures import Counts, Pool
from apps.monitoring.selectors.held_back import held_counted
from apps.monitoring.selectors.node_troubles import NodeCounts, nodes_counted
from apps.monitoring.selectors.waste import WasteTotals, waste_totals
from apps.monitoring.web.fault_words import fault_line
from apps.serving import selectors as serving
from apps.serving.selectors import CardWorkload
from controlplane.domain.common.accelerators import CardState, ChipKind
from controlplane.ports import registry

#: Of the faults that stand, the page shows the worst.
FAULTS_SHOWN = 5
#: More nodes than these are drawn as a map, and opened one at a time.
NODES_IN_FULL = 24
#: Of more nodes than these only those in trouble are shown, and no more than so many of them.
NODES_ON_MAP, TROUBLED_SHOWN = 64, 50


class Use(StrEnum):
    """What a cell of the fleet says about its card."""

    HELD = "held"
    FREE = "free"
    NO_NEW_WORK = "no_new_work"
    BROKEN = "broken"


_USES = {
    Use.HELD: gettext_lazy("held"),
    Use.FREE: gettext_lazy("free"),
    Use.NO_NEW_WORK: gettext_lazy("no new work"),
    Use.BROKEN: gettext_lazy("not usable"),
}


def _use(card: Card, node: Node, holder: CardWorkload | None) -> Use:
    """What matters most about it: a broken card first, whoever still holds it."""
    if card.state in (CardState.ISOLATED, CardState.UNKNOWN):
        return Use.BROKEN
    if holder is not None:
        return Use.HELD
    takes_work = card.state == CardState.USABLE and node.ready and not node.cordoned
    return Use.FREE if takes_work else Use.NO_NEW_WORK


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRow:
    """Cards of one chip, of the whole fleet or of one cluster."""

    chip: str
    #: Name and uid; empty for the whole fleet.
    cluster: str
    cluster_uid: str
    counts: Counts
    wasted: int


@login_required
def fleet_overview(request: AuthenticatedRequest) -> HttpResponse:
    """Figures first, then faults, clusters, nodes, cards and who holds them."""
    at = timezone.now()
    operates = fleet.operates(request.user)
    pools, wasted = figures.pools(at=at), waste_totals(at=at)
    heard = figures.sources_heard(at=at)
    worst = faults_worst(most=FAULTS_SHOWN)
    clusters: list[Any] = list(fleet.clusters())
    context = {
        "counts": figures.together(pool.counts for pool in pools),
        "wasted": wasted,
        "pools": _pool_rows(pools, wasted),
        "faults": [fault_line(fault, operates=operates) for fault in worst.faults],
        "fault_count": worst.standing,
        "held": held_counted() if worst.standing else None,
        "sources": heard,
        "unheard": [one for one in heard if one.how in _UNHEARD],
        "operates": operates,
        "clusters": clusters,
        **_nodes(request, count=sum(cluster.node_count for cluster in clusters)),
    }
    return render(request, "monitoring/fleet.html", context)


_UNHEARD = frozenset({figures.Hearing.TROUBLED, figures.Hearing.LATE})


def _pool_rows(pools: Sequence[Pool], wasted: WasteTotals) -> list[PoolRow]:
    """Each chip, the most cards first and processors last; below it its clusters, where it is in several."""
    by_chip: dict[str, list[Pool]] = {}
    for pool in pools:
        by_chip.setdefault(pool.chip, []).append(pool)
    rows: list[PoolRow] = []
    for chip, own in by_chip.items():
        below = [_pool_row(pool, wasted.cards) for pool in own]
        if len(own) == 1:
            rows += below
            continue
        rows.append(
            PoolRow(
                chip=chip,
                cluster="",
                cluster_uid="",
                counts=figures.together(pool.counts for pool in own),
                wasted=sum(row.wasted for row in below),
            )
        )
        rows += below
    most = {chip: sum(pool.counts.total for pool in own) for chip, own in by_chip.items()}
    return sorted(
        rows, key=lambda row: (_is_processor(row.chip), -most[row.chip], row.chip, row.cluster)
    )


def _is_processor(chip: str) -> bool:
    """Each machine has them; what a company buys stands above."""
    known = registry.chips().get(chip)
    return known is not None and known.kind is ChipKind.CPU


def _pool_row(pool: Pool, wasted: Mapping[tuple[str, str], int]) -> PoolRow:
    return PoolRow(
        chip=pool.chip,
        cluster=pool.cluster,
        cluster_uid=pool.cluster_uid,
        counts=pool.counts,
        wasted=wasted.get((pool.cluster, pool.chip), 0),
    )


def _nodes(request: AuthenticatedRequest, *, count: int) -> dict[str, Any]:
    """The nodes as their number allows: all in full, all as a map, or those in trouble."""
    opened = request.GET.get("node", "")
    if count > NODES_ON_MAP:
        chosen = request.GET.get("cluster", "")
        rows = list(fleet.nodes_with_cards().filter(uid=opened)) if opened else []
        return {
            "nodes": _nodes_drawn(request, rows),
            **_in_trouble(nodes_counted(), chosen=chosen),
        }
    nodes = _nodes_drawn(request, list(fleet.nodes_with_cards()))
    uses = Counter(cell["use"] for node in nodes for cell in node["cells"])
    return {"legend": _legend(uses), **_divided(nodes, opened=opened)}


def _nodes_drawn(request: AuthenticatedRequest, rows: list[Node]) -> list[dict[str, Any]]:
    if not rows:
        return []
    holders = serving.card_workloads(request.user, nodes=rows)
    return [_node(row, holders) for row in rows]


def _legend(uses: Mapping[Use, int]) -> list[dict[str, Any]]:
    return [{"use": use, "word": word, "count": uses[use]} for use, word in _USES.items()]


def _divided(nodes: list[dict[str, Any]], *, opened: str) -> dict[str, Any]:
    """Which nodes are drawn in full, and where there are many the map of all of them, by cluster."""
    if len(nodes) <= NODES_IN_FULL:
        return {"nodes": nodes}
    parts: dict[str, list[dict[str, Any]]] = {}
    for one in nodes:
        parts.setdefault(one["node"].cluster.name, []).append(one)
    return {
        "nodes": [one for one in nodes if one["node"].uid == opened],
        "parts": sorted(parts.items()),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Nodes of one cluster, or of all, that somebody should look at."""

    #: Its name; empty for all.
    cluster: str
    count: int
    #: In the whole fleet, and in each cluster that has some.
    everywhere: int
    clusters: Sequence[tuple[str, int]]
    sound: int
    #: The worst of them, each with a ``Use`` for every card, the broken ones first.
    worst: Sequence[tuple[NodeCounts, Sequence[Use]]]


def _in_trouble(counted: Sequence[NodeCounts], *, chosen: str) -> dict[str, Any]:
    """The worst nodes, of the cluster of that name if there is one, and how many are sound."""
    known = chosen in {one.cluster for one in counted}
    within = [one for one in counted if one.cluster == chosen] if known else counted
    listed = [one for one in within if not one.sound]
    by_cluster = Counter(one.cluster for one in counted if not one.sound)
    uses: Counter[Use] = Counter()
    for one in counted:
        uses.update(_uses_of(one))
    trouble = Trouble(
        cluster=chosen if known else "",
        count=len(listed),
        everywhere=by_cluster.total(),
        clusters=sorted(by_cluster.items()),
        sound=len(within) - len(listed),
        worst=[(one, list(Counter(_uses_of(one)).elements())) for one in listed[:TROUBLED_SHOWN]],
    )
    return {"legend": _legend(uses), "trouble": trouble}


def _uses_of(node: NodeCounts) -> Mapping[Use, int]:
    return {
        Use.BROKEN: node.broken,
        Use.NO_NEW_WORK: node.no_new_work,
        Use.HELD: node.held,
        Use.FREE: node.free,
    }


def cells_of(node: Node, holders: dict[int, CardWorkload]) -> list[dict[str, Any]]:
    """The node's cards in the order of their numbers, each with who holds it and what that means."""
    cells = []
    for card in sorted(node.cards.all(), key=lambda card: card.index):
        holder = holders.get(card.pk)
        use = _use(card, node, holder)
        cells.append({"card": card, "holder": holder, "use": use, "word": _USES[use]})
    return cells


def _node(node: Node, holders: dict[int, CardWorkload]) -> dict[str, Any]:
    cells = cells_of(node, holders)
    cards = [cell["card"] for cell in cells]
    kinds = Counter((card.chip, card.memory) for card in cards)
    return {
        "node": node,
        "cells": cells,
        "held": sum(card.pk in holders for card in cards),
        "chips": [
            {"name": name, "memory": memory, "count": count}
            for (name, memory), count in kinds.items()
        ],
    }
