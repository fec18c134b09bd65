"""The page of one node: its cards and who holds them, and what its cluster says of it."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.web.requests import AuthenticatedRequest
from apps.fleet import selectors as fleet
from apps.fleet import services
from apps.fleet.models import Node
from apps.monitoring.selectors.fault_rows import Place, faults_of_node, isolations_by_place
from apps.monitoring.selectors.fleet_figures import figures_of_node
from apps.monitoring.web.fault_words import ISOLATIONS, fault_line
from apps.monitoring.web.figure_words import briefly
from apps.monitoring.web.fleet import cells_of
from apps.quotas.selectors import usage_by_team
from apps.serving import selectors as serving
from controlplane.ports.clusters import ClusterError, NodeInspection
from controlplane.web.message_translation import translate_message
from controlplane.web.pages import is_fragment, run_action

#: Of a node with more pods or events, that many are shown.
MOST_SHOWN = 100
MOST_FAULTS = 20


def _found(uid: str, name: str) -> Node:
    return get_object_or_404(fleet.nodes_with_cards(), cluster__uid=uid, name=name)


@login_required
def node(request: AuthenticatedRequest, uid: str, name: str) -> HttpResponse:
    """At once what is known here; what the cluster says is asked for by a second request.

    Pods, events and labels are for whoever operates the fleet.
    """
    found = _found(uid, name)
    operates = fleet.operates(request.user)
    asks = operates and fleet.inspectable(found.cluster)
    context: dict[str, Any] = {"node": found, "operates": operates, "asks": asks}
    if asks and (is_fragment(request) or request.GET.get("asked")):
        context |= {"asked": True, **_seen(found)}
    if is_fragment(request):
        return render(request, "fleet/node.html#seen", context)
    holders = serving.card_workloads(request.user, nodes=[found])
    context["cells"] = cells_of(found, holders)
    context["running"] = usage_by_team(found) if operates else []
    context["cores"] = found.cpu / 1000
    context |= _health(found, operates=operates)
    context["labels"] = sorted(found.labels.items()) if operates else []
    context["localities"] = fleet.card_localities(found) if operates else ()
    return render(request, "fleet/node.html", context)


def _health(found: Node, *, operates: bool) -> dict[str, Any]:
    """What is wrong with it, whether it is out of use, and the newest figures of its cards."""
    faults = faults_of_node(found)
    isolation = isolations_by_place({found.pk}).get(Place(found.pk, None))
    return {
        "faults": [fault_line(one, operates=operates) for one in faults[:MOST_FAULTS]],
        "faults_more": max(0, len(faults) - MOST_FAULTS),
        "isolation": isolation,
        "isolation_word": ISOLATIONS[isolation.state] if isolation else "",
        "isolation_look": f"isolation_{isolation.state}" if isolation else "",
        "figures": briefly(figures_of_node(found), at=timezone.now()),
    }


def _seen(found: Node) -> dict[str, Any]:
    """What its cluster says of it, or why that cannot be said."""
    try:
        view = fleet.inspect(found.cluster, lambda cluster: cluster.node(found.name))
    except ClusterError as error:
        return {"silent": translate_message(str(error))}
    if view is None:
        return {"silent": _("The cluster has no node of that name any more.")}
    return {"view": view, **_parts(view)}


def _parts(view: NodeInspection) -> dict[str, Any]:
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
def node_cordon(
    request: AuthenticatedRequest, uid: str, name: str, *, cordoned: bool
) -> HttpResponse:
    found = _found(uid, name)

    def act() -> str:
        services.node_cordon(node=found, cordoned=cordoned, actor=request.user)
        if cordoned:
            return _("No new work comes to this node; what runs there goes on.")
        return _("New work may come to this node again.")

    back = reverse("node", args=[uid, name])
    try:
        return run_action(request, act, back=back)
    except services.NodeIsolated as refusal:
        why = _("%(node)s is out of use since %(since)s: give it back instead.")
        since = f"{refusal.since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        messages.error(request, why % {"node": found, "since": since})
        return redirect(back)
