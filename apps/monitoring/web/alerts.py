"""Pages of alerts, silences, alert rules, receivers and routes."""

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
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

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
from apps.monitoring.selectors.alert_samples import AlertRuleTrial, alert_rule_dry_run
from apps.monitoring.selectors.alerts import (
    MEASURE_LABELS,
    SEVERITY_LABELS,
    alert_rule_title,
    format_alert_labels,
    formatted_sample_value,
)
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
from controlplane.domain.alerts.lifecycle import AlertState
from controlplane.domain.alerts.rules import RuleInvalid, parse_rule
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.web.pages import PageTab, render_page
from controlplane.web.reasons import render_reason
from controlplane.web.tables import FilterForm, ListTable, TableColumn


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
    TableColumn(key="notified_at", label=gettext_lazy("Notified")),
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
    require_fleet_operator(request.user)
    group = get_object_or_404(selectors.alert_groups_visible(request.user), uid=uid)
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
        "condition": document
        and f"{document['op']} {formatted_sample_value(measure, document['threshold'])}",
        "rows": [
            {
                "alert": one,
                "labels": format_alert_labels(one.labels),
                "value": formatted_sample_value(measure, one.value),
                "over": one.state == AlertState.RESOLVED,
            }
            for one in table.rows
        ],
        "notices": selectors.notices_of_group(group)[:20],
        "silences": selectors.matching_silences_by_group([group], at=timezone.now()).get(
            group.pk, []
        ),
        "silence_form": SilenceForm(
            initial={"matchers": "\n".join(_matchers_of_alert_group(group))}
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
    """The form; ``back`` names the group whose page linked to it."""
    require_fleet_operator(request.user)
    bound = request.method == "POST"
    form = SilenceForm(request.POST if bound else None)
    if bound and form.is_valid():
        now = timezone.now()
        try:
            services.silence_create(
                matchers=non_empty_lines(form.cleaned_data["matchers"]),
                ends_at=now + form.length,
                reason=form.cleaned_data["reason"],
                actor=request.user,
                at=now,
            )
        except services.AlertSettingsRefused as refusal:
            form.add_error(
                refusal.field if refusal.field in form.fields else None,
                render_reason(str(refusal)),
            )
        else:
            messages.success(
                request, _("Alert silenced. Notifications resume when the silence expires.")
            )
            return redirect("alert-silences")
    context = {"form": form}
    status = 422 if bound else 200
    return render(request, "monitoring/alert_silence_new.html", context, status=status)


def _find_silence(request: AuthenticatedRequest, uid: str) -> AlertSilence:
    require_fleet_operator(request.user)
    return get_object_or_404(selectors.silences_visible(request.user), uid=uid)


@login_required
@require_POST
def silence_end(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _find_silence(request, uid)
    services.silence_end(silence=found, actor=request.user, at=timezone.now())
    messages.success(
        request, _("Silence expired. Firing alerts are notified in the next evaluation.")
    )
    return redirect("alert-silences")


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
        "condition": f"{document['op']} {formatted_sample_value(measure, document['threshold'])}",
        "lasts": document["lasts"],
    }


@login_required
def alert_rule_new_view(request: AuthenticatedRequest) -> HttpResponse:
    require_fleet_operator(request.user)
    return _edit_alert_rule(request, None)


@login_required
def alert_rule_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    require_fleet_operator(request.user)
    return _edit_alert_rule(
        request, get_object_or_404(selectors.alert_rules_visible(request.user), uid=uid)
    )


def _edit_alert_rule(request: AuthenticatedRequest, row: AlertRule | None) -> HttpResponse:
    """The editor; with ``?check=1`` only what the rule would do, for htmx."""
    bound = request.method == "POST"
    initial = None if row is None else AlertRuleForm.initial_values_of_job(row)
    form = AlertRuleForm(request.POST if bound else None, initial=initial)
    if row is not None:
        del form.fields["name"]
    checks = bound and "check" in request.GET
    valid = bound and form.is_valid()
    document = {**form.document()} if valid else {}
    if row is not None:
        document["name"] = row.name
    if (
        valid
        and not checks
        and (saved := _save_alert_rule(request, form, row, document)) is not None
    ):
        messages.success(request, _("Rule saved. It applies from the next evaluation."))
        return redirect("alert-rule", saved.uid)
    context: dict[str, Any] = {"form": form, "rule": row}
    if checks:
        context["trial"] = _dry_run_alert_rule(form, document) if valid else None
        return render(request, "monitoring/alert_rule.html#trial", context)
    status = 422 if bound else 200
    return render(request, "monitoring/alert_rule.html", context, status=status)


def _save_alert_rule(
    request: AuthenticatedRequest,
    form: AlertRuleForm,
    row: AlertRule | None,
    document: dict[str, object],
) -> AlertRule | None:
    """Save the rule; None if the form is invalid."""
    at = timezone.now()
    try:
        if row is None:
            return services.alert_rule_create(document=document, actor=request.user, at=at)
        return services.alert_rule_change(rule=row, document=document, actor=request.user, at=at)
    except RuleInvalid as invalid:
        form.add_findings(_rule_findings(invalid))
    except services.AlertSettingsRefused as refusal:
        form.add_error(refusal.field, render_reason(str(refusal)))
    return None


def _dry_run_alert_rule(form: AlertRuleForm, document: dict[str, object]) -> AlertRuleTrial | None:
    try:
        return alert_rule_dry_run(parse_rule(document), at=timezone.now())
    except RuleInvalid as invalid:
        form.add_findings(_rule_findings(invalid))
    return None


def _rule_findings(invalid: RuleInvalid) -> list[FieldFinding]:
    return [
        FieldFinding(field=one.field, message=render_reason(one.message))
        for one in invalid.findings
    ]


@login_required
@require_POST
def alert_rule_delete_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    require_fleet_operator(request.user)
    row = get_object_or_404(selectors.alert_rules_visible(request.user), uid=uid)
    try:
        services.alert_rule_delete(rule=row, actor=request.user, at=timezone.now())
    except services.AlertSettingsRefused as refusal:
        messages.error(request, render_reason(str(refusal)))
        return redirect("alert-rule", uid)
    messages.success(request, _("Rule %(name)s deleted.") % {"name": row.name})
    return redirect("alert-rules")


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
                "state": _receiver_state(row),
            }
            for row in receivers
        ],
    }
    return render(request, "monitoring/alert_routes.html", context)


def _receiver_state(receiver: AlertReceiver) -> str:
    """A state of the table of state badges."""
    if not receiver.active:
        return "paused"
    if receiver.tried_at is None:
        return "untried"
    return "failing" if receiver.last_error else "working"


@sensitive_post_parameters("url", "secret")
@login_required
def alert_receiver_new_view(request: AuthenticatedRequest) -> HttpResponse:
    require_fleet_operator(request.user)
    bound = request.method == "POST"
    form = AlertReceiverForm(request.POST if bound else None)
    if bound and form.is_valid():
        try:
            services.alert_receiver_create(request=form.to_request(), actor=request.user)
        except AlertSettingsRefused as refusal:
            form.add_error(refusal.field, render_reason(str(refusal)))
        else:
            messages.success(request, _("Receiver created. Send a test notification to verify it."))
            return redirect("alert-routes")
    context = {"form": form}
    status = 422 if bound else 200
    return render(request, "monitoring/alert_receiver_new.html", context, status=status)


def _find_receiver(request: AuthenticatedRequest, uid: str) -> AlertReceiver:
    require_fleet_operator(request.user)
    return get_object_or_404(selectors.receivers_visible(request.user), uid=uid)


@login_required
@require_POST
def alert_receiver_test_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _find_receiver(request, uid)
    try:
        services.alert_receiver_test(receiver=found, actor=request.user, at=timezone.now())
    except AlertSettingsRefused as refusal:
        messages.error(request, render_reason(str(refusal)))
    else:
        messages.success(request, _("Test notification queued. The result appears here."))
    return redirect("alert-routes")


@login_required
@require_POST
def alert_receiver_switch_view(
    request: AuthenticatedRequest, uid: str, *, active: bool
) -> HttpResponse:
    services.alert_receiver_switch(
        receiver=_find_receiver(request, uid), actor=request.user, active=active
    )
    text = _("Receiver resumed.") if active else _("Receiver paused.")
    messages.success(request, text)
    return redirect("alert-routes")


@login_required
@require_POST
def alert_receiver_delete_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _find_receiver(request, uid)
    services.alert_receiver_delete(receiver=found, actor=request.user)
    messages.success(request, _("Receiver %(name)s deleted.") % {"name": found.name})
    return redirect("alert-routes")


def _find_route(request: AuthenticatedRequest, uid: str) -> AlertRoute:
    require_fleet_operator(request.user)
    return get_object_or_404(selectors.alert_routes_visible(request.user), uid=uid)


@login_required
def alert_route_new_view(request: AuthenticatedRequest) -> HttpResponse:
    require_fleet_operator(request.user)
    return _edit_alert_route(request, None)


@login_required
def alert_route_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    return _edit_alert_route(request, _find_route(request, uid))


def _edit_alert_route(request: AuthenticatedRequest, row: AlertRoute | None) -> HttpResponse:
    bound = request.method == "POST"
    initial = None if row is None else AlertRouteForm.initial_values_of_job(row)
    form = AlertRouteForm(request.POST if bound else None, initial=initial)
    form.offer(selectors.receivers_visible(request.user))
    if bound and form.is_valid():
        try:
            if row is None:
                services.alert_route_create(request=form.to_request(), actor=request.user)
            else:
                services.alert_route_change(
                    route=row, request=form.to_request(), actor=request.user
                )
        except AlertSettingsRefused as refusal:
            form.add_error(refusal.field, render_reason(str(refusal)))
        else:
            messages.success(request, _("Route saved."))
            return redirect("alert-routes")
    context = {"form": form, "route": row}
    status = 422 if bound else 200
    return render(request, "monitoring/alert_route.html", context, status=status)


@login_required
@require_POST
def alert_route_delete_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _find_route(request, uid)
    services.alert_route_delete(route=found, actor=request.user)
    messages.success(request, _("Route %(name)s deleted.") % {"name": found.name})
    return redirect("alert-routes")
