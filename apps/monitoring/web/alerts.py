"""Pages of alerts, silences, alert rules, receivers and routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Model, QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from apps.accounts.models import User
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet.selectors import require_fleet_operator
from apps.monitoring.models import (
    Alert,
    AlertGroup,
    AlertReceiver,
    AlertRoute,
    AlertRule,
    AlertSilence,
)
from apps.monitoring.selectors import alerts as selectors
from apps.monitoring.selectors.alerts import (
    MEASURE_LABELS,
    SEVERITY_LABELS,
    alert_rule_title,
    format_alert_labels,
    formatted_sample_value,
)
from apps.monitoring.selectors.rule_samples import AlertRuleTrial, alert_rule_dry_run
from apps.monitoring.services import alerts as services
from apps.monitoring.services.alerts import AlertSettingsRefused
from apps.monitoring.web.alert_forms import (
    RECEIVER_LABELS,
    AlertReceiverForm,
    AlertRouteForm,
    AlertRuleForm,
    SilenceForm,
    non_empty_lines,
)
from controlplane.domain.alerts.chat_messages import ReceiverKind
from controlplane.domain.alerts.rules import parse_rule
from controlplane.domain.rules.conditions import RuleState
from controlplane.web.forms import submitted_data
from controlplane.web.pages import (
    PageTab,
    render_form,
    render_page,
    row_action_view,
    save_form,
)
from controlplane.web.tables import FilterForm, ListTable, TableColumn

M = TypeVar("M", bound=Model)


def _finder(rows: Callable[[User], QuerySet[M]]) -> Callable[[AuthenticatedRequest, str], M]:
    """A function that returns the row with that uid to an operator of the fleet."""

    def find(request: AuthenticatedRequest, uid: str) -> M:
        require_fleet_operator(request.user)
        return get_object_or_404(rows(request.user), uid=uid)

    return find


_find_group = _finder(selectors.alert_groups_visible)
_find_rule = _finder(selectors.alert_rules_visible)
_find_silence = _finder(selectors.silences_visible)
_find_receiver = _finder(selectors.receivers_visible)
_find_route = _finder(selectors.alert_routes_visible)


def alert_tabs(current: str, *, firing: int | None = None) -> list[PageTab]:
    """The parts of the alerts, each with an address of its own."""
    parts = (
        ("alerts", gettext_lazy("Firing")),
        ("alerts-past", gettext_lazy("History")),
        ("alert-silences", gettext_lazy("Silences")),
        ("alert-rules", gettext_lazy("Rules")),
        ("alert-routes", gettext_lazy("Notification routes")),
    )
    return [
        PageTab(
            label=label,
            href=reverse(name),
            current=name == current,
            count=firing if name == "alerts" else None,
        )
        for name, label in parts
    ]


class AlertGroupFilter(FilterForm):
    lookups: ClassVar[dict[str, str]] = {"severity": "severity", "rule": "rule_name__icontains"}

    severity = forms.ChoiceField(
        label=gettext_lazy("Severity"),
        choices=[
            ("", gettext_lazy("all")),
            *((one.value, word) for one, word in SEVERITY_LABELS.items()),
        ],
    )
    rule = forms.CharField(label=gettext_lazy("Rule"), max_length=60)


def _group_title(group: AlertGroup) -> str:
    return alert_rule_title(group.rule_name, group.title)


COLUMNS = (
    TableColumn(key="title", label=gettext_lazy("Object"), csv=_group_title),
    TableColumn(key="severity", label=gettext_lazy("Severity")),
    TableColumn(
        key="labels",
        label=gettext_lazy("Location"),
        csv=lambda row: format_alert_labels(row.labels),
    ),
    TableColumn(key="count", label=gettext_lazy("Alerts"), sort="count", numeric=True),
    TableColumn(key="began_at", label=gettext_lazy("Since"), sort="pk"),
    TableColumn(key="notified_at", label=gettext_lazy("Last notified")),
)
PAST_COLUMNS = (
    *COLUMNS[:3],
    TableColumn(key="most", label=gettext_lazy("Alerts"), sort="most", numeric=True),
    TableColumn(key="began_at", label=gettext_lazy("Started"), sort="pk"),
    TableColumn(key="ended_at", label=gettext_lazy("Ended"), sort="ended_at"),
)


def _group_row(group: AlertGroup) -> dict[str, Any]:
    return {
        "group": group,
        "title": _group_title(group),
        "labels": format_alert_labels(group.labels),
    }


def _group_rows(groups: Sequence[AlertGroup]) -> list[dict[str, Any]]:
    """With the silences that match."""
    silenced = [group for group in groups if group.silenced and group.ended_at is None]
    over = selectors.matching_silences_by_group(silenced, at=timezone.now())
    return [
        {
            **_group_row(group),
            "silencers": sorted({one.created_by_name for one in over.get(group.pk, ())}),
        }
        for group in groups
    ]


@login_required
def alerts(request: AuthenticatedRequest, *, past: bool = False) -> HttpResponseBase:
    """Alert groups; the firing ones are refreshed automatically."""
    require_fleet_operator(request.user)
    rows: QuerySet[AlertGroup] = selectors.alert_groups_visible(request.user)
    rows = rows.filter(ended_at__isnull=not past)
    columns = PAST_COLUMNS if past else COLUMNS
    table = ListTable(
        request, rows, columns=columns, filters=AlertGroupFilter, default_sort="-began_at"
    )
    if table.is_csv_request:
        return table.csv(filename="alerts.csv")
    context = {
        "past": past,
        "table": table,
        "rows": _group_rows(table.rows),
        "tabs": alert_tabs("alerts-past" if past else "alerts"),
        "routed": past or bool(selectors.active_alert_routes()),
    }
    return render_page(
        request, "monitoring/alerts.html", context, fragment="rows", changing=not past
    )


ALERT_COLUMNS = (
    TableColumn(
        key="labels", label=gettext_lazy("Object"), csv=lambda row: format_alert_labels(row.labels)
    ),
    TableColumn(key="state", label=gettext_lazy("State")),
    TableColumn(key="value", label=gettext_lazy("Value"), sort="value", numeric=True),
    TableColumn(key="began_at", label=gettext_lazy("Since"), sort="pk"),
    TableColumn(key="resolved_at", label=gettext_lazy("Resolved"), sort="resolved_at"),
)


@login_required
def alert(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """One group: its alerts, notices and their deliveries, and silences."""
    group = _find_group(request, uid)
    table = ListTable(
        request,
        Alert.objects.filter(group=group),
        columns=ALERT_COLUMNS,
        default_sort="-began_at",
    )
    if table.is_csv_request:
        return table.csv(filename="alert.csv")
    document = group.rule.document if group.rule else {}
    measure = document.get("measure", "")
    context = {
        **_group_row(group),
        "severity": group.severity,
        "table": table,
        "measure": MEASURE_LABELS.get(measure, measure),
        "condition": document and selectors.displayed_condition(document),
        "rows": [
            {
                "alert": one,
                "labels": format_alert_labels(one.labels),
                "value": formatted_sample_value(measure, one.value),
                "over": one.state == RuleState.RESOLVED,
            }
            for one in table.rows
        ],
        "notices": selectors.notices_of_group(group)[:20],
        "silences": selectors.matching_silences_by_group([group], at=timezone.now()).get(
            group.pk, []
        ),
        "silence_form": SilenceForm(
            initial={
                "name": ", ".join(_matchers_of_alert_group(group))[:80].strip(),
                "matchers": "\n".join(_matchers_of_alert_group(group)),
            }
        ),
    }
    template = "monitoring/alert.html"
    return render_page(request, template, context, fragment="now", changing=group.ended_at is None)


def _matchers_of_alert_group(group: AlertGroup) -> list[str]:
    """Matchers for exactly this group."""
    named = [f"{name}={value}" for name, value in group.labels.items() if value]
    return [f"rule={group.rule_name}", *named]


@login_required
def silences(request: AuthenticatedRequest) -> HttpResponse:
    require_fleet_operator(request.user)
    now = timezone.now()
    rows = selectors.silences_visible(request.user)[:100]
    context = {
        "tabs": alert_tabs("alert-silences"),
        "rows": [{"silence": row, "stands": row.ends_at > now} for row in rows],
    }
    return render(request, "monitoring/alert_silences.html", context)


@login_required
def silence_new(request: AuthenticatedRequest) -> HttpResponse:
    require_fleet_operator(request.user)
    form, now = SilenceForm(submitted_data(request)), timezone.now()

    def save() -> AlertSilence:
        return services.silence_create(
            name=form.cleaned_data["name"],
            matchers=non_empty_lines(form.cleaned_data["matchers"]),
            ends_at=now + form.length,
            reason=form.cleaned_data["reason"],
            actor=request.user,
            at=now,
        )

    if save_form(form, save):
        messages.success(
            request, _("Alert silenced. Notifications resume when the silence expires.")
        )
        return redirect("alert-silences")
    return render_form(request, "monitoring/alert_silence_new.html", form)


@row_action_view(load=_find_silence, page="alert-silences", listed=True)
def silence_end(request: AuthenticatedRequest, row: AlertSilence) -> str:
    services.silence_end(silence=row, actor=request.user, at=timezone.now())
    return _("Alert silence ended. Firing alerts are notified in the next evaluation.")


@login_required
def alert_rule_list(request: AuthenticatedRequest) -> HttpResponse:
    require_fleet_operator(request.user)
    context = {
        "tabs": alert_tabs("alert-rules"),
        "rows": [_rule_row(rule) for rule in selectors.alert_rules_visible(request.user)],
    }
    return render(request, "monitoring/alert_rules.html", context)


def _rule_row(rule: AlertRule) -> dict[str, object]:
    document = rule.document
    measure = document["measure"]
    return {
        "rule": rule,
        "title": alert_rule_title(rule.name, rule.title),
        "measure": MEASURE_LABELS.get(measure, measure),
        "condition": selectors.displayed_condition(document),
        "lasts": document["lasts"],
    }


@login_required
def alert_rule_new_view(request: AuthenticatedRequest) -> HttpResponse:
    require_fleet_operator(request.user)
    return _edit_alert_rule(request, None)


@login_required
def alert_rule_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    return _edit_alert_rule(request, _find_rule(request, uid))


def _edit_alert_rule(request: AuthenticatedRequest, row: AlertRule | None) -> HttpResponse:
    """The editor; with ``?check=1`` only what the rule would do, for htmx."""
    initial = None if row is None else AlertRuleForm.initial_values_of_job(row)
    form, at = AlertRuleForm(submitted_data(request), initial=initial), timezone.now()
    if row is not None:
        del form.fields["name"]

    def save() -> AlertRule:
        document, actor = form.document(), request.user
        if row is None:
            return services.alert_rule_create(document=document, actor=actor, at=at)
        return services.alert_rule_change(rule=row, document=document, actor=actor, at=at)

    def try_rule() -> AlertRuleTrial:
        name = {} if row is None else {"name": row.name}
        return alert_rule_dry_run(parse_rule({**form.document(), **name}), at=at)

    if form.is_bound and "check" in request.GET:
        context = {"trial": save_form(form, try_rule), "form": form, "rule": row}
        return render(request, "monitoring/alert_rule.html#trial", context)
    if saved := save_form(form, save):
        messages.success(request, _("Alert rule saved. It applies from the next evaluation."))
        return redirect("alert-rule", saved.uid)
    return render_form(request, "monitoring/alert_rule.html", form, rule=row)


@row_action_view(load=_find_rule, page="alert-rules", listed=True, refusals=(AlertSettingsRefused,))
def alert_rule_delete_view(request: AuthenticatedRequest, row: AlertRule) -> str:
    services.alert_rule_delete(rule=row, actor=request.user, at=timezone.now())
    return _("Alert rule %(name)s deleted.") % {"name": row.name}


@login_required
def alert_route_list(request: AuthenticatedRequest) -> HttpResponse:
    require_fleet_operator(request.user)
    receivers = selectors.receivers_visible(request.user)
    context = {
        "tabs": alert_tabs("alert-routes"),
        "routes": selectors.alert_routes_visible(request.user),
        "receivers": [
            {
                "receiver": row,
                "kind": RECEIVER_LABELS[ReceiverKind(row.kind)],
                "state": row.badge,
            }
            for row in receivers
        ],
    }
    return render(request, "monitoring/alert_routes.html", context)


@sensitive_post_parameters("url", "secret")
@login_required
def alert_receiver_new_view(request: AuthenticatedRequest) -> HttpResponse:
    require_fleet_operator(request.user)
    form = AlertReceiverForm(submitted_data(request))

    def save() -> AlertReceiver:
        return services.alert_receiver_create(request=form.to_request(), actor=request.user)

    if save_form(form, save):
        messages.success(
            request, _("Alert receiver created. Send a test notification to verify it.")
        )
        return redirect("alert-routes")
    return render_form(request, "monitoring/alert_receiver_new.html", form)


_receiver_action = row_action_view(
    load=_find_receiver, page="alert-routes", listed=True, refusals=(AlertSettingsRefused,)
)


@_receiver_action
def alert_receiver_test_view(request: AuthenticatedRequest, row: AlertReceiver) -> str:
    services.alert_receiver_test(receiver=row, actor=request.user, at=timezone.now())
    return _("Test notification queued. The result appears here.")


@_receiver_action
def alert_receiver_switch_view(
    request: AuthenticatedRequest, row: AlertReceiver, *, active: bool
) -> str:
    services.alert_receiver_switch(receiver=row, actor=request.user, active=active)
    return _("Alert receiver resumed.") if active else _("Alert receiver paused.")


@_receiver_action
def alert_receiver_delete_view(request: AuthenticatedRequest, row: AlertReceiver) -> str:
    services.alert_receiver_delete(receiver=row, actor=request.user)
    return _("Alert receiver %(name)s deleted.") % {"name": row.name}


@login_required
def alert_route_new_view(request: AuthenticatedRequest) -> HttpResponse:
    require_fleet_operator(request.user)
    return _edit_alert_route(request, None)


@login_required
def alert_route_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    return _edit_alert_route(request, _find_route(request, uid))


def _edit_alert_route(request: AuthenticatedRequest, row: AlertRoute | None) -> HttpResponse:
    initial = None if row is None else AlertRouteForm.initial_values_of_job(row)
    form = AlertRouteForm(submitted_data(request), initial=initial)
    form.offer(selectors.receivers_visible(request.user))

    def save() -> AlertRoute:
        if row is None:
            return services.alert_route_create(request=form.to_request(), actor=request.user)
        return services.alert_route_change(route=row, request=form.to_request(), actor=request.user)

    if save_form(form, save):
        messages.success(request, _("Notification route saved."))
        return redirect("alert-routes")
    return render_form(request, "monitoring/alert_route.html", form, route=row)


@row_action_view(load=_find_route, page="alert-routes", listed=True)
def alert_route_delete_view(request: AuthenticatedRequest, row: AlertRoute) -> str:
    services.alert_route_delete(route=row, actor=request.user)
    return _("Notification route %(name)s deleted.") % {"name": row.name}
