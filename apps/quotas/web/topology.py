"""The topology page: allocated and free cards of the fleet, from the network down to the card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from django.views.decorators.gzip import gzip_page

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.quotas.selectors.defragmentation import can_propose_defragmentation
from apps.quotas.selectors.free_capacity import CardUse
from apps.quotas.selectors.topology import (
    CLUSTER,
    FLEET,
    NODE,
    TopologyDomain,
    TopologyDomainNotFound,
    fleet_topology,
    topology_document,
)
from controlplane.web.pages import PageTab, render_page

#: Defragmentation is suggested from this percentage of fragments among free cards.
SUGGESTION_PERCENT = 5

KIND_LABELS: dict[str, str | Promise] = {
    FLEET: _("fleet"),
    CLUSTER: _("cluster"),
    "superpod": _("superpod"),
    "spine": _("spine"),
    "leaf": pgettext_lazy("network", "leaf"),
    "rack": _("rack"),
    NODE: _("node"),
}
USE_LABELS: dict[CardUse, Promise] = {
    CardUse.HELD: _("allocated"),
    CardUse.FREE: _("free"),
    CardUse.FRAGMENT: _("fragmented card"),
    CardUse.RESERVED: _("reserved card"),
    CardUse.NO_NEW_WORK: _("cordoned"),
    CardUse.BROKEN: _("unavailable"),
}
COLOUR_LABELS: dict[str, Promise] = {
    "state": _("State"),
    "queue": _("Queue"),
    "team": _("Team"),
    "chip": _("Chip"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainLink:
    domain: TopologyDomain
    kind: str | Promise
    href: str


@login_required
def topology(request: AuthenticatedRequest) -> HttpResponse:
    """The domain with the key ``?at=``, and the domains below it."""
    seen = fleet_topology(request.user)
    here = _find_domain(seen.at, request.GET.get("at", ""))
    by = request.GET.get("by", "state")
    if by not in COLOUR_LABELS:
        raise Http404
    context: dict[str, Any] = {
        "here": here,
        "kind": KIND_LABELS.get(here.kind, here.kind),
        "trail": [_domain_row(domain, by) for domain in here.trail[:-1]],
        "rows": [_domain_row(domain, by) for domain in here.below],
        "cells": [(cell, USE_LABELS[cell.use]) for cell in seen.cells(here.occupancy)]
        if here.occupancy
        else [],
        "legend": [(use.value, label, here.uses[use]) for use, label in USE_LABELS.items()],
        "by": by,
        "colours": [
            PageTab(label=label, href=_domain_url(here, colour), current=colour == by)
            for colour, label in COLOUR_LABELS.items()
        ],
        "words": {
            "uses": {use.value: str(label) for use, label in USE_LABELS.items()},
            "kinds": {kind: str(label) for kind, label in KIND_LABELS.items()},
        },
        "suggests": here.fragment_percent >= SUGGESTION_PERCENT
        and can_propose_defragmentation(request.user),
    }
    return render_page(request, "quotas/topology.html", context, fragment="zoomed", changing=True)


@login_required
@gzip_page
def topology_cards(request: AuthenticatedRequest) -> HttpResponse:
    """All cards as JSON for the map."""
    return JsonResponse(
        topology_document(fleet_topology(request.user)),
        json_dumps_params={"separators": (",", ":")},
    )


def _find_domain(at: Any, key: str) -> TopologyDomain:
    try:
        found: TopologyDomain = at(key)
    except TopologyDomainNotFound as missing:
        raise Http404 from missing
    return found


def _domain_row(domain: TopologyDomain, by: str) -> DomainLink:
    return DomainLink(
        domain=domain, kind=KIND_LABELS.get(domain.kind, domain.kind), href=_domain_url(domain, by)
    )


def _domain_url(domain: TopologyDomain, by: str) -> str:
    asked = {"at": domain.key, "by": by if by != "state" else ""}
    query = urlencode({name: value for name, value in asked.items() if value}, safe=":/")
    return f"{reverse('topology')}?{query}" if query else reverse("topology")
