"""The fleet map: every card by one of its metrics, from the spine down to the card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import cache_control
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import etag

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.console.selectors.fleet_map import (
    FleetMapCardStatus,
    FleetMapPart,
    FleetMapScope,
    HeatMapMetric,
    fleet_map_document,
    fleet_map_nodes,
    fleet_map_tree,
    fleet_map_version,
)
from apps.fleet import selectors as fleet
from apps.quotas.web.topology import KIND_LABELS
from controlplane.web.pages import PageTab, render_page
from controlplane.web.tables import FilterForm

STATE = "state"
DEFAULT_HEAT = HeatMapMetric.UTILIZATION.value
USES: Mapping[FleetMapCardStatus, Promise] = {
    FleetMapCardStatus.HELD: _("allocated"),
    FleetMapCardStatus.FREE: _("free"),
    FleetMapCardStatus.NO_NEW_WORK: _("cordoned"),
    FleetMapCardStatus.UNKNOWN: _("unknown"),
    FleetMapCardStatus.ISOLATED: _("isolated"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColorScale:
    """How a metric is displayed: name, unit, and the boundaries of the colours."""

    label: Promise
    unit: str
    edges: tuple[int, ...]


SCALES: Mapping[HeatMapMetric, ColorScale] = {
    HeatMapMetric.UTILIZATION: ColorScale(
        label=_("Utilization"), unit=" %", edges=(5, 20, 40, 60, 80)
    ),
    HeatMapMetric.MEMORY: ColorScale(label=_("Memory"), unit=" %", edges=(20, 40, 60, 80, 95)),
    HeatMapMetric.TEMPERATURE: ColorScale(
        label=_("Temperature"), unit=" °C", edges=(40, 55, 70, 80, 90)
    ),
    HeatMapMetric.POWER: ColorScale(label=_("Power"), unit=" W", edges=(100, 200, 300, 400, 500)),
    HeatMapMetric.ECC: ColorScale(label=_("Memory errors"), unit="", edges=(1, 2, 5, 10, 100)),
}


class FleetMapFilter(FilterForm):
    cluster = forms.ChoiceField(label=_("Cluster"))
    chip = forms.ChoiceField(label=_("Chip"))

    def __init__(self, *args: Any, clusters: Sequence[str], chips: Sequence[str], **kwargs: Any):
        super().__init__(*args, **kwargs)
        everything: list[tuple[str, str | Promise]] = [("", _("all"))]
        for name, values in (("cluster", clusters), ("chip", chips)):
            self.choice(name).choices = [*everything, *((value, value) for value in values)]

    @property
    def scope(self) -> FleetMapScope:
        return FleetMapScope(chip=self.chosen("chip") or "", cluster=self.chosen("cluster") or "")

    @property
    def query(self) -> dict[str, str]:
        asked = {"cluster": self.chosen("cluster"), "chip": self.chosen("chip")}
        return {name: value for name, value in asked.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMapRow:
    """A part of the fleet in the table below the picture, or a step on the way down."""

    part: FleetMapPart
    kind: str | Promise
    href: str
    #: With their unit; empty where nothing was measured.
    mean: str = ""
    highest: str = ""
    uses: Sequence[tuple[Promise, int]] = ()


@login_required
def fleet_map(request: AuthenticatedRequest) -> HttpResponse:
    """The domain in ``?at=`` by the metric in ``?by=``, and what is below it."""
    by = request.GET.get("by", DEFAULT_HEAT)
    if by != STATE and by not in set(HeatMapMetric):
        raise Http404
    heat = None if by == STATE else HeatMapMetric(by)
    filters = _map_filter(request)
    parts = fleet_map_tree(fleet_map_nodes(at=timezone.now(), only=filters.scope), by=heat)
    here = parts.get(request.GET.get("at", ""))
    if here is None:
        raise Http404
    labels = {STATE: _("State"), **{one.value: scale.label for one, scale in SCALES.items()}}
    context: dict[str, Any] = {
        "here": here,
        "kind": KIND_LABELS.get(here.kind, here.kind),
        "trail": [_map_row(part, by, filters) for part in here.trail[:-1]],
        "rows": [_map_row(part, by, filters, heat=heat) for part in here.below],
        "by": by,
        "label": labels[by],
        "heat": heat,
        "whole": _map_row(here, by, filters, heat=heat),
        "unmeasured": here.cards - here.measured,
        "colours": [
            PageTab(label=label, href=_map_url(here, one, filters), current=one == by)
            for one, label in labels.items()
        ],
        "filters": filters,
        "kept": urlencode(filters.query),
        "data": _url_with_query(reverse("fleet-map-cards"), filters.query),
        "words": _map_labels(),
    }
    return render_page(request, "console/fleet_map.html", context, fragment="zoomed", changing=True)


def _map_filter(request: HttpRequest) -> FleetMapFilter:
    clusters = list(fleet.clusters_with_counts().order_by("name").values_list("name", flat=True))
    chips = sorted(fleet.cards_by_chip())
    return FleetMapFilter(request.GET, clusters=clusters, chips=chips)


def _map_labels() -> dict[str, Any]:
    return {
        "uses": {use.value: str(word) for use, word in USES.items()},
        "heats": {
            heat.value: {"label": str(one.label), "unit": one.unit, "edges": one.edges}
            for heat, one in SCALES.items()
        },
    }


def _map_row(
    part: FleetMapPart, by: str, filters: FleetMapFilter, *, heat: HeatMapMetric | None = None
) -> FleetMapRow:
    unit = SCALES[heat].unit if heat else ""
    return FleetMapRow(
        part=part,
        kind=KIND_LABELS.get(part.kind, part.kind),
        href=_map_url(part, by, filters),
        mean="" if part.mean is None else f"{part.mean:,.1f}{unit}",
        highest="" if part.highest is None else f"{part.highest:,.0f}{unit}",
        uses=[(word, part.uses[use]) for use, word in USES.items()],
    )


def _map_url(part: FleetMapPart, by: str, filters: FleetMapFilter) -> str:
    asked = {**filters.query, "at": part.key, "by": by if by != DEFAULT_HEAT else ""}
    return _url_with_query(reverse("fleet-map"), asked)


def _url_with_query(address: str, asked: Mapping[str, str]) -> str:
    query = urlencode({name: value for name, value in asked.items() if value}, safe=":/")
    return f"{address}?{query}" if query else address


def _requested_map_version(request: HttpRequest) -> str:
    asked = f"{fleet_map_version()}|{request.GET.urlencode()}"
    return f'"{sha256(asked.encode()).hexdigest()[:24]}"'


@login_required
@gzip_page
@cache_control(private=True, no_cache=True)
@etag(_requested_map_version)
def fleet_map_data(request: AuthenticatedRequest) -> HttpResponse:
    """Every card with its latest metrics, as data of the map; 304 if unchanged."""
    at = timezone.now()
    nodes = fleet_map_nodes(at=at, only=_map_filter(request).scope)
    return HttpResponse(fleet_map_document(nodes, at=at), content_type="application/json")


@login_required
def redirect_to_fleet_map_card(request: AuthenticatedRequest) -> HttpResponse:
    """To the page of the card that the picture names by its node and its place there."""
    index = request.GET.get("index", "")
    if not index.isdecimal() or len(index) > 6:
        raise Http404
    card = get_object_or_404(
        fleet.cards_with_node(),
        node__cluster__name=request.GET.get("cluster", ""),
        node__name=request.GET.get("node", ""),
        index=int(index),
        parent=None,
    )
    return redirect("card", card.uid)
