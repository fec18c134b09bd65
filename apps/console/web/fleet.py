"""The fleet overview, and the page of one node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from enum import StrEnum
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.console.selectors.fleet_reports import IdleAllocationTotals, idle_allocation_totals
from apps.fleet import selectors as fleet
from apps.fleet import services
from apps.fleet.models import Card, Node
from apps.monitoring.selectors import fleet_counts
from apps.monitoring.selectors.faults import (
    FaultLocation,
    faults_of_node,
    isolations_by_location,
    worst_open_faults,
)
from apps.monitoring.selectors.fleet_counts import (
    ChipPool,
    NodeCounts,
    nodes_with_card_counts,
)
from apps.monitoring.selectors.suppressed_actions import suppressed_counts
from apps.monitoring.web.fault_labels import ISOLATIONS, displayed_fault_row
from apps.quotas.selectors import usage_by_team
from apps.serving import selectors as serving
from apps.serving.selectors import CardWorkload
from apps.telemetry import selectors
from apps.telemetry.selectors import node_metrics
from apps.telemetry.web.card_metric_labels import metric_summaries
from controlplane.domain.common.accelerators import CardState, ChipKind
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import ClusterError, NodeInspection
from controlplane.web.pages import is_htmx_fragment_request, run_action
from controlplane.web.reasons import render_reason

#: Number of open faults on the page, most severe first.
FAULTS_SHOWN = 5
#: More nodes than these are drawn as a map, and opened one at a time.
NODES_IN_FULL = 24
#: Of more nodes than these only unhealthy ones are shown, and no more than so many of them.
NODES_ON_MAP, UNHEALTHY_SHOWN = 64, 50


class FleetOverviewCardStatus(StrEnum):
    """The content of a cell of the fleet overview."""

    HELD = "held"
    FREE = "free"
    NO_NEW_WORK = "no_new_work"
    BROKEN = "broken"


_USES = {
    FleetOverviewCardStatus.HELD: gettext_lazy("allocated"),
    FleetOverviewCardStatus.FREE: gettext_lazy("free"),
    FleetOverviewCardStatus.NO_NEW_WORK: gettext_lazy("cordoned"),
    FleetOverviewCardStatus.BROKEN: gettext_lazy("unavailable"),
}


def _card_overview_status(
    card: Card, node: Node, holder: CardWorkload | None
) -> FleetOverviewCardStatus:
    """The most important state: an unusable card first, allocated or not."""
    if card.state in (CardState.ISOLATED, CardState.UNKNOWN):
        return FleetOverviewCardStatus.BROKEN
    if holder is not None:
        return FleetOverviewCardStatus.HELD
    accepts_workloads = card.state == CardState.USABLE and node.ready and not node.cordoned
    return (
        FleetOverviewCardStatus.FREE if accepts_workloads else FleetOverviewCardStatus.NO_NEW_WORK
    )


@login_required
def fleet_overview(request: AuthenticatedRequest) -> HttpResponse:
    """Totals first, then faults, clusters, nodes, cards and their workloads."""
    at = timezone.now()
    operates = fleet.is_fleet_operator(request.user)
    pools, wasted = fleet_counts.chip_pools(at=at), idle_allocation_totals(at=at)
    sources = selectors.source_statuses(at=at)
    worst = worst_open_faults(most=FAULTS_SHOWN)
    clusters: list[Any] = list(fleet.clusters_with_counts())
    context = {
        "counts": fleet_counts.sum_card_counts(pool.counts for pool in pools),
        "wasted": wasted,
        "pools": _pool_rows(pools, wasted),
        "faults": [displayed_fault_row(fault, operates=operates) for fault in worst.faults],
        "fault_count": worst.standing,
        "held": suppressed_counts() if worst.standing else None,
        "sources": sources,
        "degraded_sources": [one for one in sources if one.how in _DEGRADED_SOURCES],
        "operates": operates,
        "clusters": clusters,
        **_fleet_nodes_context(request, count=sum(cluster.node_count for cluster in clusters)),
    }
    return render(request, "console/fleet.html", context)


_DEGRADED_SOURCES = frozenset({selectors.SourceHealth.DEGRADED, selectors.SourceHealth.LATE})


def _pool_rows(
    pools: Sequence[ChipPool], wasted: IdleAllocationTotals
) -> list[tuple[ChipPool, int]]:
    """Each chip with its idle cards, the most cards first and processors last.

    Below a chip are its clusters, where it is in several; the whole fleet has no cluster.
    """
    by_chip: dict[str, list[ChipPool]] = {}
    for pool in pools:
        by_chip.setdefault(pool.chip, []).append(pool)
    total = {
        chip: fleet_counts.sum_card_counts(pool.counts for pool in own)
        for chip, own in by_chip.items()
    }
    whole = [
        ChipPool(cluster="", cluster_uid="", chip=chip, counts=total[chip])
        for chip, own in by_chip.items()
        if len(own) > 1
    ]
    idle = Counter(wasted.cards)
    for (_cluster, chip), cards in wasted.cards.items():
        idle["", chip] += cards
    rows = sorted(
        [*whole, *pools],
        key=lambda row: (_is_cpu(row.chip), -total[row.chip].total, row.chip, row.cluster),
    )
    return [(row, idle[row.cluster, row.chip]) for row in rows]


def _is_cpu(chip: str) -> bool:
    """Processors are not listed with the accelerators."""
    known = adapter_registry.all_chips().get(chip)
    return known is not None and known.kind is ChipKind.CPU


def _fleet_nodes_context(request: AuthenticatedRequest, *, count: int) -> dict[str, Any]:
    """The nodes as their number allows: all in full, all as a map, or the unhealthy ones."""
    opened = request.GET.get("node", "")
    if count > NODES_ON_MAP:
        chosen = request.GET.get("cluster", "")
        rows = list(fleet.nodes_with_cards().filter(uid=opened)) if opened else []
        return {
            "nodes": _detailed_nodes_context(request, rows),
            **_unhealthy_nodes(nodes_with_card_counts(), chosen=chosen),
        }
    nodes = _detailed_nodes_context(request, list(fleet.nodes_with_cards()))
    uses = Counter(cell["use"] for node in nodes for cell in node["cells"])
    return {"legend": _card_status_legend(uses), **_detailed_and_mapped_nodes(nodes, opened=opened)}


def _detailed_nodes_context(
    request: AuthenticatedRequest, rows: list[Node]
) -> list[dict[str, Any]]:
    if not rows:
        return []
    holders = serving.card_workloads(request.user, nodes=rows)
    return [_node_context(row, holders) for row in rows]


def _card_status_legend(uses: Mapping[FleetOverviewCardStatus, int]) -> list[dict[str, Any]]:
    return [{"use": use, "word": word, "count": uses[use]} for use, word in _USES.items()]


def _detailed_and_mapped_nodes(nodes: list[dict[str, Any]], *, opened: str) -> dict[str, Any]:
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
class NodeProblem:
    """Nodes of one cluster, or of all, that require attention."""

    #: Its name; empty for all.
    cluster: str
    count: int
    #: In the whole fleet, and in each cluster that has some.
    everywhere: int
    clusters: Sequence[tuple[str, int]]
    sound: int
    #: The first of them, each with a ``Use`` for every card, unusable ones first.
    worst: Sequence[tuple[NodeCounts, Sequence[FleetOverviewCardStatus]]]


def _unhealthy_nodes(counted: Sequence[NodeCounts], *, chosen: str) -> dict[str, Any]:
    """Nodes that require attention, of the cluster of that name if given, and the number of healthy nodes."""
    known = chosen in {one.cluster for one in counted}
    within = [one for one in counted if one.cluster == chosen] if known else counted
    listed = [one for one in within if not one.sound]
    by_cluster = Counter(one.cluster for one in counted if not one.sound)
    uses: Counter[FleetOverviewCardStatus] = Counter()
    for one in counted:
        uses.update(_card_counts_by_status(one))
    problem = NodeProblem(
        cluster=chosen if known else "",
        count=len(listed),
        everywhere=by_cluster.total(),
        clusters=sorted(by_cluster.items()),
        sound=len(within) - len(listed),
        worst=[
            (one, list(Counter(_card_counts_by_status(one)).elements()))
            for one in listed[:UNHEALTHY_SHOWN]
        ],
    )
    return {"legend": _card_status_legend(uses), "problem": problem}


def _card_counts_by_status(node: NodeCounts) -> Mapping[FleetOverviewCardStatus, int]:
    return {
        FleetOverviewCardStatus.BROKEN: node.broken,
        FleetOverviewCardStatus.NO_NEW_WORK: node.no_new_work,
        FleetOverviewCardStatus.HELD: node.held,
        FleetOverviewCardStatus.FREE: node.free,
    }


def card_cells(node: Node, holders: dict[int, CardWorkload]) -> list[dict[str, Any]]:
    """The node's cards in the order of their numbers, each with who holds it and what that means."""
    cells = []
    for card in sorted(node.cards.all(), key=lambda card: card.index):
        holder = holders.get(card.pk)
        use = _card_overview_status(card, node, holder)
        cells.append({"card": card, "holder": holder, "use": use, "word": _USES[use]})
    return cells


def _node_context(node: Node, holders: dict[int, CardWorkload]) -> dict[str, Any]:
    cells = card_cells(node, holders)
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


#: Of a node with more pods or events, that many are shown.
MOST_SHOWN = 100
MOST_FAULTS = 20


def _find_node(uid: str, name: str) -> Node:
    return get_object_or_404(fleet.nodes_with_cards(), cluster__uid=uid, name=name)


@login_required
def node_detail(request: AuthenticatedRequest, uid: str, name: str) -> HttpResponse:
    """Stored data immediately; data of the cluster are loaded by a second request.

    Pods, events and labels are visible to operators of the fleet.
    """
    found = _find_node(uid, name)
    operates = fleet.is_fleet_operator(request.user)
    inspectable = operates and fleet.supports_inspection(found.cluster)
    context: dict[str, Any] = {"node": found, "operates": operates, "inspectable": inspectable}
    if inspectable and (is_htmx_fragment_request(request) or request.GET.get("asked")):
        context |= {"asked": True, **_node_inspection_context(found)}
    if is_htmx_fragment_request(request):
        return render(request, "fleet/node.html#seen", context)
    holders = serving.card_workloads(request.user, nodes=[found])
    context["cells"] = card_cells(found, holders)
    context["running"] = usage_by_team(found) if operates else []
    context["cores"] = found.cpu / 1000
    context["weights"] = serving.node_weights(found, user=request.user)
    context |= _node_health_context(found, operates=operates)
    context["labels"] = sorted(found.labels.items()) if operates else []
    context["localities"] = fleet.card_localities(found) if operates else ()
    return render(request, "fleet/node.html", context)


def _node_health_context(found: Node, *, operates: bool) -> dict[str, Any]:
    """Faults and isolations of the node, and the latest metrics of its cards."""
    faults = faults_of_node(found)
    isolation = isolations_by_location({found.pk}).get(FaultLocation(found.pk, None))
    return {
        "faults": [displayed_fault_row(one, operates=operates) for one in faults[:MOST_FAULTS]],
        "faults_more": max(0, len(faults) - MOST_FAULTS),
        "isolation": isolation,
        "isolation_word": ISOLATIONS[isolation.state] if isolation else "",
        "isolation_state": f"isolation_{isolation.state}" if isolation else "",
        "figures": metric_summaries(node_metrics(found), at=timezone.now()),
    }


def _node_inspection_context(found: Node) -> dict[str, Any]:
    """Data of its cluster, or why they cannot be loaded."""
    try:
        view = fleet.inspect_cluster(found.cluster, lambda cluster: cluster.node(found.name))
    except ClusterError as error:
        return {"silent": render_reason(str(error))}
    if view is None:
        return {"silent": _("The cluster no longer has a node with this name.")}
    return {"view": view, **_inspection_sections(view)}


def _inspection_sections(view: NodeInspection) -> dict[str, Any]:
    pods = sorted(view.pods, key=lambda pod: (not pod.launch, pod.namespace, pod.name))
    return {
        "conditions": sorted(view.conditions, key=lambda one: (one.good, one.name)),
        "pods": pods[:MOST_SHOWN],
        "pods_more": max(0, len(pods) - MOST_SHOWN),
        "pods_ours": sum(bool(pod.launch) for pod in pods),
        "events": view.events[:MOST_SHOWN],
        "facts": sorted(view.facts.items()),
        "taints": view.taints,
    }


@login_required
@require_POST
def node_set_cordoned(
    request: AuthenticatedRequest, uid: str, name: str, *, cordoned: bool
) -> HttpResponse:
    found = _find_node(uid, name)

    def action() -> str:
        services.node_set_cordoned(node=found, cordoned=cordoned, actor=request.user)
        if cordoned:
            return _("Node cordoned. Running workloads continue.")
        return _("Node uncordoned.")

    back = reverse("node", args=[uid, name])
    try:
        return run_action(request, action, back=back)
    except services.NodeIsolated as refusal:
        message = _("%(node)s has been isolated since %(since)s. Return it to service instead.")
        since = f"{refusal.since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        messages.error(request, message % {"node": found, "since": since})
        return redirect(back)
