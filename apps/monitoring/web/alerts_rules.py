"""Pages of alert rules: all of them, and the editor that tries a rule before it is kept."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.web.requests import AuthenticatedRequest
from apps.fleet.selectors import require_operator
from apps.monitoring.models import AlertRule
from apps.monitoring.selectors import alerts as selectors
from apps.monitoring.selectors.alerts_trials import Trial, trial_of
from apps.monitoring.selectors.alerts_words import MEASURE_WORDS, title_of, value_of
from apps.monitoring.services import alerts as services
from apps.monitoring.web.alerts import tabs_of
from apps.monitoring.web.alerts_forms import RuleForm
from controlplane.domain.alerts.rules import RuleInvalid, rule_read
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.web.message_translation import translate_message


@login_required
def rules(request: AuthenticatedRequest) -> HttpResponse:
    require_operator(request.user)
    context = {
        "tabs": tabs_of("alert-rules"),
        "rows": [_row(rule) for rule in selectors.rules_visible(request.user)],
    }
    return render(request, "monitoring/alerts_rules.html", context)


def _row(rule: AlertRule) -> dict[str, object]:
    document = rule.document
    measure = document["measure"]
    return {
        "rule": rule,
        "title": title_of(rule.name, rule.title),
        "measure": MEASURE_WORDS.get(measure, measure),
        "condition": f"{document['op']} {value_of(measure, document['threshold'])}",
        "lasts": document["lasts"],
    }


@login_required
def rule_new(request: AuthenticatedRequest) -> HttpResponse:
    require_operator(request.user)
    return _edit(request, None)


@login_required
def rule(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    require_operator(request.user)
    return _edit(request, get_object_or_404(selectors.rules_visible(request.user), uid=uid))


def _edit(request: AuthenticatedRequest, row: AlertRule | None) -> HttpResponse:
    """The editor; with ``?check=1`` only what the rule would do, for htmx."""
    bound = request.method == "POST"
    initial = None if row is None else RuleForm.initial_of(row)
    form = RuleForm(request.POST if bound else None, initial=initial)
    if row is not None:
        del form.fields["name"]
    checks = bound and "check" in request.GET
    valid = bound and form.is_valid()
    document = {**form.document()} if valid else {}
    if row is not None:
        document["name"] = row.name
    if valid and not checks and (kept := _kept(request, form, row, document)) is not None:
        messages.success(request, _("The rule is kept; the next turn judges by it."))
        return redirect("alert-rule", kept.uid)
    context: dict[str, Any] = {"form": form, "rule": row}
    if checks:
        context["trial"] = _trial(form, document) if valid else None
        return render(request, "monitoring/alerts_rule.html#trial", context)
    status = 422 if bound else 200
    return render(request, "monitoring/alerts_rule.html", context, status=status)


def _kept(
    request: AuthenticatedRequest,
    form: RuleForm,
    row: AlertRule | None,
    document: dict[str, object],
) -> AlertRule | None:
    """The rule as it is now; None where the form says what is wrong."""
    at = timezone.now()
    try:
        if row is None:
            return services.rule_create(document=document, actor=request.user, at=at)
        return services.rule_change(rule=row, document=document, actor=request.user, at=at)
    except RuleInvalid as invalid:
        form.add_findings(_told(invalid))
    except services.AlertRefused as refusal:
        form.add_error(refusal.field, translate_message(str(refusal)))
    return None


def _trial(form: RuleForm, document: dict[str, object]) -> Trial | None:
    try:
        return trial_of(rule_read(document), at=timezone.now())
    except RuleInvalid as invalid:
        form.add_findings(_told(invalid))
    return None


def _told(invalid: RuleInvalid) -> list[FieldFinding]:
    return [
        FieldFinding(field=one.field, message=translate_message(one.message))
        for one in invalid.findings
    ]


@login_required
@require_POST
def rule_delete(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    require_operator(request.user)
    row = get_object_or_404(selectors.rules_visible(request.user), uid=uid)
    try:
        services.rule_delete(rule=row, actor=request.user, at=timezone.now())
    except services.AlertRefused as refusal:
        messages.error(request, translate_message(str(refusal)))
        return redirect("alert-rule", uid)
    messages.success(request, _("The rule %(name)s was deleted.") % {"name": row.name})
    return redirect("alert-rules")
