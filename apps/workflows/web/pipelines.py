"""Pages of pipelines: list, detail, actions, and the submission form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http.response import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.services import IdempotentRequestInProgress
from apps.accounts.web.form_idempotency import run_once_per_form
from apps.accounts.web.forms import TeamFilterForm
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.jobs.services import SpecRefused
from apps.models.services.model_versions import GateOverrideRefused
from apps.workflows import selectors, services
from apps.workflows.models import Pipeline, Step
from apps.workflows.web.forms import (
    LabelledValue,
    PipelineForm,
    form_supports_pipeline,
    format_settings,
    pipeline_form_initial,
)
from controlplane.domain.common.permissions import roles_grant
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.pipelines.lifecycle import PipelineState, permissions_for_steps
from controlplane.web.forms import has_only_required_errors
from controlplane.web.pages import PageTab, render_page, row_action_view
from controlplane.web.state_badges import state_badge
from controlplane.web.tables import ListTable, TableColumn
from controlplane.web.templatetags.ninefold import filesize, humanized, number


class PipelineFilter(TeamFilterForm):
    lookups: ClassVar = {"text": "name__icontains", "state": "state", "team": "team"}

    text = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    state = forms.ChoiceField(
        label=gettext_lazy("State"),
        choices=[
            ("", gettext_lazy("any state")),
            *((state.value, state_badge(state).label) for state in PipelineState),
        ],
    )


COLUMNS = (
    TableColumn(key="name", label=gettext_lazy("Name"), sort="name"),
    TableColumn(key="state", label=gettext_lazy("State"), sort="state"),
    TableColumn(
        key="steps",
        label=pgettext_lazy("pipeline", "Steps"),
        csv=lambda row: " ".join(f"{step.kind}:{step.state}" for step in row.steps.all()),
    ),
    TableColumn(key="model_version", label=gettext_lazy("Start model")),
    TableColumn(key="created_by", label=gettext_lazy("Created by"), sort="created_by__username"),
    TableColumn(key="created_at", label=gettext_lazy("Submitted"), sort="pk"),
)


@login_required
def pipelines(request: AuthenticatedRequest) -> HttpResponseBase:
    table = ListTable(
        request,
        selectors.pipelines_visible(request.user),
        columns=COLUMNS,
        filters=PipelineFilter(request.GET, user=request.user),
    )
    if table.is_csv_request:
        return table.csv(filename="pipelines.csv")
    changing = any(row.state == PipelineState.RUNNING for row in table.rows)
    return render_page(
        request, "workflows/pipelines.html", {"table": table}, fragment="rows", changing=changing
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStepRow:
    step: Step
    settings: tuple[LabelledValue, ...]
    metrics: tuple[LabelledValue, ...]


def pipeline_step_row(step: Step) -> PipelineStepRow:
    """The step with its settings and metrics."""
    return PipelineStepRow(
        step=step,
        settings=format_settings(step.spec),
        metrics=tuple(
            LabelledValue(name=humanized(name), value=_format_metric(name, value))
            for name, value in sorted(step.metrics.items())
        ),
    )


def _format_metric(name: str, value: float) -> str:
    # Sizes are in bytes.
    return filesize(int(value)) if "size" in name.split("_") else number(value)


@login_required
def pipeline(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """``?tab=`` is ``overview`` or ``events``."""
    found = get_object_or_404(selectors.pipelines_visible(request.user), uid=uid)
    steps = list(found.steps.all())
    tab = "events" if request.GET.get("tab") == "events" else "overview"
    page = reverse("pipeline", args=[uid])
    context: dict[str, Any] = {
        "pipeline": found,
        "rows": [pipeline_step_row(step) for step in steps],
        "held": selectors.step_held_by_gate(steps),
        "retry_step": _find_retry_step(found, steps),
        "actions": _pipeline_actions(request, found, steps),
        "tabs": [
            PageTab(
                label=pgettext("pipeline", "Steps"),
                href=page,
                current=tab == "overview",
                count=len(steps),
            ),
            PageTab(label=_("Events"), href=f"{page}?tab=events", current=tab == "events"),
        ],
    }
    if tab == "events":
        context["events"] = selectors.pipeline_events(found)
    changing = found.state == PipelineState.RUNNING
    return render_page(
        request, f"workflows/{tab}.html", context, fragment="live", changing=changing
    )


def _find_retry_step(found: Pipeline, steps: list[Step]) -> Step | None:
    """The step from which a failed or cancelled pipeline resumes."""
    if not selectors.pipeline_can_be_retried(found):
        return None
    return next((step for step in steps if step.state not in ("succeeded", "skipped")), None)


def _pipeline_actions(
    request: AuthenticatedRequest, found: Pipeline, steps: list[Step]
) -> dict[str, str]:
    """Per action, why it is not available now; empty if it is."""
    role = cancel = retry = override = ""
    held = accounts.roles_of(request.user, found.team)
    if not all(
        roles_grant(held, needed) for needed in permissions_for_steps(services.step_kinds(found))
    ):
        role = _("Your role in team %(team)s is read-only. An administrator can change it.") % {
            "team": found.team
        }
    if found.state not in (PipelineState.RUNNING, PipelineState.HELD):
        cancel = _("The job or pipeline has already ended.")
    elif found.cancel_requested_at is not None:
        cancel = _("The job or pipeline is already being cancelled.")
    if not selectors.pipeline_can_be_retried(found):
        retry = _("Only failed or cancelled pipelines can be retried.")
    if found.state not in (PipelineState.HELD, PipelineState.SUCCEEDED) or not (
        selectors.step_held_by_gate(steps)
    ):
        override = _("No gate requires approval.")
    clone = (
        ""
        if form_supports_pipeline(found)
        else _("The form does not support the steps of this pipeline. Submit it with REST.")
    )
    return {
        "cancel": role or cancel,
        "retry": role or retry,
        "clone": role or clone,
        "override": role or override,
    }


def _runnable_pipeline(request: AuthenticatedRequest, uid: str) -> Pipeline:
    """A pipeline that the user may run.

    :raises PermissionRefused: if they may only view it.
    """
    found: Pipeline = get_object_or_404(selectors.pipelines_visible(request.user), uid=uid)
    services.steps_require_permissions(request.user, services.step_kinds(found), team=found.team)
    return found


@row_action_view(load=_runnable_pipeline, page="pipeline")
def pipeline_cancel(request: AuthenticatedRequest, found: Pipeline) -> str:
    services.pipeline_cancel(pipeline=found, actor=request.user, at=timezone.now())
    return _("The pipeline is being cancelled.")


@row_action_view(load=_runnable_pipeline, page="pipeline")
def pipeline_retry(request: AuthenticatedRequest, found: Pipeline) -> str:
    services.pipeline_retry(pipeline=found, actor=request.user, at=timezone.now())
    return _("The pipeline was resumed.")


@row_action_view(
    load=_runnable_pipeline,
    page="pipeline",
    refusals=(IllegalTransition, SpecRefused, GateOverrideRefused),
)
def pipeline_approve_anyway(request: AuthenticatedRequest, found: Pipeline) -> str:
    """Override the missed gate, with a recorded reason."""
    reason = request.POST.get("reason", "")
    services.gate_override(pipeline=found, actor=request.user, reason=reason, at=timezone.now())
    return _("The gate was approved and the pipeline was resumed.")


def _pipeline_form(request: AuthenticatedRequest) -> PipelineForm:
    if request.method == "POST":
        return PipelineForm(request.POST, user=request.user)
    if clone := request.GET.get("clone"):
        found = get_object_or_404(selectors.pipelines_visible(request.user), uid=clone)
        return PipelineForm(user=request.user, initial=pipeline_form_initial(found))
    chosen = {
        field: request.GET[parameter]
        for parameter, field in (("model", "model_version"), ("dataset", "dataset_version"))
        if parameter in request.GET
    }
    return PipelineForm(user=request.user, initial={"": chosen})


@login_required
def pipeline_new(request: AuthenticatedRequest) -> HttpResponse:
    """Errors are shown at the fields, and the input is kept."""
    form = _pipeline_form(request)
    if form.is_bound and form.is_valid():
        try:
            uid, now = _submit_pipeline_once(request, form)
        except SpecRefused as refusal:
            form.add_findings(refusal.findings)
        except IdempotentRequestInProgress as busy:
            form.head.add_error(None, str(busy))
        else:
            if now:
                messages.success(request, _("The pipeline was submitted."))
            else:
                messages.info(
                    request,
                    _(
                        "This form was already submitted; this is its pipeline. Clone it to submit "
                        "another one."
                    ),
                )
            return redirect("pipeline", uid=uid)
    status = 422 if form.is_bound else 200
    return render(request, "workflows/pipeline_new.html", {"form": form}, status=status)


def _submit_pipeline_once(request: AuthenticatedRequest, form: PipelineForm) -> tuple[str, bool]:
    """The uid of the pipeline, and whether it was submitted by this request."""
    pipeline_request, team = form.request(), form.head.cleaned_data["team"]
    services.steps_require_permissions(request.user, pipeline_request.kinds, team=team)
    return run_once_per_form(
        request,
        lambda: (
            services.pipeline_submit(actor=request.user, team=team, request=pipeline_request).uid
        ),
    )


@login_required
@require_POST
def pipeline_check(request: AuthenticatedRequest) -> HttpResponse:
    """Findings of the form so far, or a summary of the pipeline, as a fragment; nothing is stored."""
    form = _pipeline_form(request)
    pipeline_request = None
    if form.is_valid():
        pipeline_request = form.request()
        form.add_findings(
            services.pipeline_check(pipeline_request, team=form.head.cleaned_data["team"])
        )
    context = {
        "wrong": list(form.errors_by_field()),
        "unfilled": has_only_required_errors(form.head, *form.sections),
        "pipeline_request": pipeline_request,
    }
    return render(request, "workflows/check.html", context)
