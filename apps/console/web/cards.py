"""The page of one card: its condition, actions, metrics and history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.console.selectors.card_history import (
    CardHistoryEntry,
    card_history_entries,
    card_history_events,
)
from apps.fleet import selectors as fleet
from apps.fleet.models import Card, Cluster
from apps.monitoring.models import Isolation
from apps.monitoring.selectors.faults import (
    FaultLocation,
    chart_fault_markers,
    faults_of_card,
    isolations_by_location,
)
from apps.monitoring.web.fault_labels import (
    ACTIONS,
    ISOLATIONS,
    OUTCOMES,
    DisplayedFaultRow,
    displayed_fault_row,
    fault_mark_text,
)
from apps.quotas.selectors import TeamUsage, usage_by_team
from apps.telemetry.models import CardMetrics
from apps.telemetry.selectors import (
    FRESH,
    CardSeries,
    ChartRange,
    card_series,
)
from apps.telemetry.web.card_metric_labels import displayed_metrics
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import GIB
from controlplane.domain.health.snapshots import HealthAction
from controlplane.domain.telemetry.metrics import Metric
from controlplane.web.pages import PageTab, keyset_page

MOST_SHOWN = 50
TABS: Mapping[str, Promise] = {
    "": gettext_lazy("Metrics"),
    "history": gettext_lazy("History"),
    "faults": gettext_lazy("Faults"),
    "work": gettext_lazy("Workloads"),
}
RANGES: Mapping[ChartRange, Promise] = {
    ChartRange.HOUR: gettext_lazy("1 hour"),
    ChartRange.HOURS: gettext_lazy("6 hours"),
    ChartRange.DAY: gettext_lazy("24 hours"),
    ChartRange.WEEK: gettext_lazy("7 days"),
    ChartRange.MONTH: gettext_lazy("30 days"),
}
_ADVICE: Mapping[CardState, Promise] = {
    CardState.UNKNOWN: gettext_lazy(
        "No recent metrics or heartbeat. Check the node and its metric source; "
        "scheduling resumes when the card reports again."
    ),
    CardState.NO_NEW_WORK: gettext_lazy(
        "Running workloads continue; no new workloads are scheduled on the card or node."
    ),
    CardState.ISOLATED: gettext_lazy(
        "No workloads are scheduled on the card or node until a burn-in passes or an "
        "operator returns it to service."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSummary:
    """The summary of a card: its state, the reason, and what to do."""

    reason: str
    todo: str
    faults: Sequence[DisplayedFaultRow]
    isolation: Isolation | None
    isolation_word: Promise | str
    #: The whole node is isolated, not this card alone.
    with_node: bool

    @property
    def isolation_state(self) -> str:
        return f"isolation_{self.isolation.state}" if self.isolation else ""


def _find_card(uid: str) -> Card:
    return get_object_or_404(fleet.cards_with_node().select_related("node__cluster"), uid=uid)


def _card_summary(card: Card, *, operates: bool) -> CardSummary:
    standing = faults_of_card(card).filter(ended_at=None).order_by("-level", "-id")
    lines = [displayed_fault_row(one, operates=operates) for one in standing[:MOST_SHOWN]]
    by_place = isolations_by_location({card.node_id})
    own = by_place.get(FaultLocation(card.node_id, card.pk))
    isolation = own or by_place.get(FaultLocation(card.node_id, None))
    worst = lines[0] if lines else None
    state = CardState(card.state)
    return CardSummary(
        reason=card.state_reason or (isolation.reason if isolation else ""),
        todo=worst.remedy if worst else str(_ADVICE.get(state, "")),
        faults=lines,
        isolation=isolation,
        isolation_word=ISOLATIONS[isolation.state] if isolation else "",
        with_node=own is None and isolation is not None,
    )


@login_required
def card_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found, tab = _find_card(uid), request.GET.get("tab", "")
    if tab not in TABS:
        raise Http404
    operates = fleet.is_fleet_operator(request.user)
    at = timezone.now()
    holding = card_history_entries(
        found, request.user, most=MOST_SHOWN if tab in ("history", "work") else 1
    )
    condition = _card_summary(found, operates=operates)
    context: dict[str, Any] = {
        "card": found,
        "operates": operates,
        "running": _team_usage_affected_by_isolation(found) if operates else [],
        "condition": condition,
        "holder": next((one for one in holding if one.ended_at is None), None),
        "tab": tab,
        "tabs": [
            PageTab(
                label=label,
                href=reverse("card", args=[uid]) + (f"?tab={name}" if name else ""),
                current=name == tab,
                count=len(condition.faults) if name == "faults" and condition.faults else None,
            )
            for name, label in TABS.items()
        ],
    }
    match tab:
        case "":
            context |= _metrics_context(request, found, at=at)
        case "history":
            context |= _history_context(found, holding, operates=operates)
        case "faults":
            context |= _faults_context(request, found, operates=operates)
        case _:
            context["work"] = holding
    return render(request, "console/card.html", context)


def _team_usage_affected_by_isolation(found: Card) -> list[TeamUsage]:
    """Who would stop if it were isolated: the whole node where the cluster binds by node."""
    whole = found.node.cluster.binding == Cluster.BindingMode.NODE
    return usage_by_team(found.node, card=None if whole else found)


def _metrics_context(request: AuthenticatedRequest, found: Card, *, at: datetime) -> dict[str, Any]:
    newest = CardMetrics.objects.filter(card=found).first()
    reach = _selected_time_range(request)
    address = reverse("card", args=[found.uid])
    return {
        "newest": newest,
        "stale": newest is not None and at - newest.at > FRESH,
        "figures": displayed_metrics(newest),
        "charts": [
            {
                "href": f"{reverse('card-chart', args=[found.uid, name])}?range={reach.value}",
                "title": chart.title,
            }
            for name, chart in CHARTS.items()
        ],
        "ranges": [
            PageTab(label=label, href=f"{address}?range={one.value}", current=one is reach)
            for one, label in RANGES.items()
        ],
    }


def _history_context(
    found: Card, holding: Sequence[CardHistoryEntry], *, operates: bool
) -> dict[str, Any]:
    rows = card_history_events(found, work=holding, most=2 * MOST_SHOWN)
    return {
        "happenings": [
            {
                "one": row,
                "line": displayed_fault_row(row.fault, operates=operates) if row.fault else None,
                "action": ACTIONS[HealthAction(row.decision.action)] if row.decision else "",
                "outcome": OUTCOMES[row.decision.outcome] if row.decision else "",
                "isolation_state": f"isolation_{row.state}" if row.state else "",
            }
            for row in rows
        ]
    }


def _faults_context(
    request: AuthenticatedRequest, found: Card, *, operates: bool
) -> dict[str, Any]:
    page = keyset_page(faults_of_card(found), before=request.GET.get("before", ""))
    return {
        "rows": [displayed_fault_row(one, operates=operates) for one in page.rows],
        "next_before": page.next_before,
    }


def _selected_time_range(request: AuthenticatedRequest) -> ChartRange:
    asked = request.GET.get("range", ChartRange.HOUR.value)
    if asked not in set(ChartRange):
        raise Http404
    return ChartRange(asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardChart:
    title: Promise
    label: Promise
    unit: str
    #: Metric → its name, and what its value is divided by.
    lines: Mapping[Metric, tuple[Promise, float]]


CHARTS: Mapping[str, CardChart] = {
    "load": CardChart(
        title=gettext_lazy("Utilization over time"),
        label=gettext_lazy("Utilization"),
        unit="%",
        lines={Metric.UTILIZATION: (gettext_lazy("Utilization"), 1)},
    ),
    "memory": CardChart(
        title=gettext_lazy("Memory usage"),
        label=gettext_lazy("Memory"),
        unit="GiB",
        lines={
            Metric.MEMORY_USED: (gettext_lazy("in use"), GIB),
            Metric.MEMORY_TOTAL: (gettext_lazy("total"), GIB),
        },
    ),
    "heat": CardChart(
        title=gettext_lazy("Temperature over time"),
        label=gettext_lazy("Temperature"),
        unit="°C",
        lines={
            Metric.TEMPERATURE: (gettext_lazy("chip temperature"), 1),
            Metric.MEMORY_TEMPERATURE: (gettext_lazy("memory"), 1),
        },
    ),
    "power": CardChart(
        title=gettext_lazy("Power draw"),
        label=gettext_lazy("Power"),
        unit="W",
        lines={Metric.POWER: (gettext_lazy("Power"), 1)},
    ),
    "errors": CardChart(
        title=gettext_lazy("Error counters"),
        label=gettext_lazy("errors since last reset"),
        unit="",
        lines={
            Metric.ECC_UNCORRECTED: (gettext_lazy("uncorrectable device memory errors"), 1),
            Metric.ECC_CORRECTED: (gettext_lazy("correctable device memory errors"), 1),
            Metric.LINK_ERRORS: (gettext_lazy("link errors between cards"), 1),
            Metric.NETWORK_ERRORS: (gettext_lazy("network"), 1),
        },
    ),
}


@login_required
def card_chart(request: AuthenticatedRequest, uid: str, chart: str) -> HttpResponse:
    """Its metrics as ``static/js/charts.js`` draws them, with a mark where a fault began."""
    found, asked = _find_card(uid), CHARTS.get(chart)
    if asked is None:
        raise Http404
    at, reach = timezone.now(), _selected_time_range(request)
    series = card_series(found, metrics=tuple(asked.lines), reach=reach, at=at)
    marks = chart_fault_markers(found, reach=reach, at=at)
    operates = fleet.is_fleet_operator(request.user)
    return JsonResponse(
        {
            "x": {"label": _("time"), "type": "date"},
            "y": {"label": str(asked.label), "unit": asked.unit},
            "series": _chart_series(series, asked),
            "marks": [
                {
                    "x": one.began_at.isoformat(),
                    "label": one.code,
                    "detail": fault_mark_text(one, operates=operates),
                    "kind": "fault",
                }
                for one in marks
            ],
            "ended": True,
        }
    )


def _chart_series(series: CardSeries, chart: CardChart) -> list[dict[str, Any]]:
    """Only what was measured at all."""
    times = [time.isoformat() for time in series.times]
    lines = []
    for metric, (name, divisor) in chart.lines.items():
        values = [
            None if value is None else round(value / divisor, 3) for value in series.values[metric]
        ]
        if any(value is not None for value in values):
            lines.append({"name": str(name), "kind": "line", "x": times, "y": values})
    return lines
