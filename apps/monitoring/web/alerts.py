"""Pages of alerts: what fires, what fired, what is silenced; one episode and what was told of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts.web.requests import AuthenticatedRequest
from apps.fleet.selectors import require_operator
from apps.monitoring.models import Alert, AlertGroup, AlertSilence
from apps.monitoring.selectors import alerts as selectors
from apps.monitoring.selectors.alerts_words import (
    MEASURE_WORDS,
    SEVERITY_WORDS,
    labels_of,
    title_of,
    value_of,
)
from apps.monitoring.services import alerts as services
from apps.monitoring.web.alerts_forms import SilenceForm, lines
from controlplane.domain.alerts.states import AlertState
from controlplane.web.message_translation import translate_message
from controlplane.web.pages import Tab, show
from controlplane.web.tables import Column, FilterForm, Table


def tabs_of(current: str, *, firing: int | None = None) -> list[Tab]:
    """The parts of the alerts, each with an address of its own."""
    parts = (
        ("alerts", gettext_lazy("Firing")),
        ("alerts-past", gettext_lazy("History")),
        ("alert-silences", gettext_lazy("Silences")),
        ("alert-rules", gettext_lazy("Rules")),
        ("alert-routes", gettext_lazy("Who is told")),
    )
    return [
        Tab(
            label=label,
            href=reverse(name),
            current=name == current,
            count=firing if name == "alerts" else None,
        )
        for name, label in parts
    ]


class GroupFilter(FilterForm):
    lookups: ClassVar[dict[str, str]] = {"severity": "severity", "rule": "rule_name__icontains"}

    severity = forms.ChoiceField(
        label=gettext_lazy("Severity"),
        choices=[
            ("", gettext_lazy("all")),
            *((one.value, word) for one, word in SEVERITY_WORDS.items()),
        ],
    )
    rule = forms.CharField(label=gettext_lazy("Rule"), max_length=60)


def _title(group: AlertGroup) -> str:
    return title_of(group.rule_name, group.title)


COLUMNS = (
    Column(key="title", label=gettext_lazy("What"), csv=_title),
    Column(key="severity", label=gettext_lazy("Severity")),
    Column(key="labels", label=gettext_lazy("Where"), csv=lambda row: labels_of(row.labels)),
    Column(key="count", label=gettext_lazy("Alerts"), sort="count", numeric=True),
    Column(key="began_at", label=gettext_lazy("Since"), sort="pk"),
    Column(key="told_at", label=gettext_lazy("Told")),
)
PAST_COLUMNS = (
    *COLUMNS[:3],
    Column(key="most", label=gettext_lazy("Alerts"), sort="most", numeric=True),
    Column(key="began_at", label=gettext_lazy("Began"), sort="pk"),
    Column(key="ended_at", label=gettext_lazy("Ended"), sort="ended_at"),
)


def _row(group: AlertGroup) -> dict[str, Any]:
    return {"group": group, "title": _title(group), "labels": labels_of(group.labels)}


def _rows(groups: Sequence[AlertGroup]) -> list[dict[str, Any]]:
    """With who silenced them, where somebody did."""
    silenced = [group for group in groups if group.silenced and group.ended_at is None]
    over = selectors.silences_over(silenced, at=timezone.now())
    return [
        {
            **_row(group),
            "silencers": sorted({one.made_by_name for one in over.get(group.pk, ())}),
        }
        for group in groups
    ]


@login_required
def alerts(request: AuthenticatedRequest, *, past: bool = False) -> HttpResponseBase:
    """Episodes; those that go on come again by themselves."""
    require_operator(request.user)
    rows: QuerySet[AlertGroup] = selectors.groups_visible(request.user)
    rows = rows.filter(ended_at__isnull=not past)
    columns = PAST_COLUMNS if past else COLUMNS
    table = Table(request, rows, columns=columns, filters=GroupFilter, default_sort="-began_at")
    if table.wants_csv:
        return table.csv(filename="alerts.csv")
    context = {
        "past": past,
        "table": table,
        "rows": _rows(table.rows),
        "tabs": tabs_of("alerts-past" if past else "alerts"),
        "routed": past or bool(selectors.routes_now()),
    }
    return show(request, "monitoring/alerts.html", context, fragment="rows", changing=not past)


ALERT_COLUMNS = (
    Column(key="labels", label=gettext_lazy("On what"), csv=lambda row: labels_of(row.labels)),
    Column(key="state", label=gettext_lazy("State")),
    Column(key="value", label=gettext_lazy("Value"), sort="value", numeric=True),
    Column(key="began_at", label=gettext_lazy("Since"), sort="pk"),
    Column(key="resolved_at", label=gettext_lazy("Over"), sort="resolved_at"),
)


@login_required
def alert(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """One episode: its alerts, who was told and how that went, who silenced it."""
    require_operator(request.user)
    group = get_object_or_404(selectors.groups_visible(request.user), uid=uid)
    table = Table(
        request,
        Alert.objects.filter(group=group),
        columns=ALERT_COLUMNS,
        default_sort="-began_at",
    )
    if table.wants_csv:
        return table.csv(filename="alert.csv")
    document = group.rule.document if group.rule else {}
    measure = document.get("measure", "")
    context = {
        **_row(group),
        "severity": group.severity,
        "table": table,
        "measure": MEASURE_WORDS.get(measure, measure),
        "condition": document and f"{document['op']} {value_of(measure, document['threshold'])}",
        "rows": [
            {
                "alert": one,
                "labels": labels_of(one.labels),
                "value": value_of(measure, one.value),
                "over": one.state == AlertState.RESOLVED,
            }
            for one in table.rows
        ],
        "notices": selectors.notices_of(group)[:20],
        "silences": selectors.silences_over([group], at=timezone.now()).get(group.pk, []),
        "silence_form": SilenceForm(initial={"matchers": "\n".join(_matchers(group))}),
    }
    template = "monitoring/alert.html"
    return show(request, template, context, fragment="now", changing=group.ended_at is None)


def _matchers(group: AlertGroup) -> list[str]:
    """What fits exactly this episode."""
    named = [f"{name}={value}" for name, value in group.labels.items() if value]
    return [f"rule={group.rule_name}", *named]


@login_required
def silences(request: AuthenticatedRequest) -> HttpResponse:
    require_operator(request.user)
    now = timezone.now()
    rows = selectors.silences_visible(request.user)[:100]
    context = {
        "tabs": tabs_of("alert-silences"),
        "rows": [{"silence": row, "stands": row.ends_at > now} for row in rows],
    }
    return render(request, "monitoring/alerts_silences.html", context)


@login_required
def silence_new(request: AuthenticatedRequest) -> HttpResponse:
    """The form; ``back`` names the episode whose page it came from."""
    require_operator(request.user)
    bound = request.method == "POST"
    form = SilenceForm(request.POST if bound else None)
    if bound and form.is_valid():
        now = timezone.now()
        try:
            services.silence_begin(
                matchers=lines(form.cleaned_data["matchers"]),
                ends_at=now + form.length,
                reason=form.cleaned_data["reason"],
                actor=request.user,
                at=now,
            )
        except services.AlertRefused as refusal:
            form.add_error(
                refusal.field if refusal.field in form.fields else None,
                translate_message(str(refusal)),
            )
        else:
            messages.success(request, _("It is silenced, and comes back by itself."))
            return redirect("alert-silences")
    context = {"form": form}
    status = 422 if bound else 200
    return render(request, "monitoring/alerts_silence_new.html", context, status=status)


def _silence(request: AuthenticatedRequest, uid: str) -> AlertSilence:
    require_operator(request.user)
    return get_object_or_404(selectors.silences_visible(request.user), uid=uid)


@login_required
@require_POST
def silence_end(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _silence(request, uid)
    services.silence_end(silence=found, actor=request.user, at=timezone.now())
    messages.success(request, _("The silence has ended; what fires is told of in the next turn."))
    return redirect("alert-silences")
