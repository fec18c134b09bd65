"""The list of pipelines, the page of one, and what can be done to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.decorators import login_required
from django.http.response import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.web.forms import TeamFilterForm
from apps.accounts.web.requests import AuthenticatedRequest
from apps.jobs.services import SpecRefused
from apps.models.services.acceptances import AcceptanceRefused
from apps.workflows import selectors, services
from apps.workflows.models import Pipeline, Step
from apps.workflows.web.forms import fits
from apps.workflows.web.words import row_of
from controlplane.domain.common.permissions import allows
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.pipelines import PipelineState, permissions_of
from controlplane.web.pages import Tab, row_action, run_action, show
from controlplane.web.state_badges import state_badge
from controlplane.web.tables import Column, Table


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
    Column(key="name", label=gettext_lazy("Name"), sort="name"),
    Column(key="state", label=gettext_lazy("State"), sort="state"),
    Column(
        key="steps",
        label=pgettext_lazy("pipeline", "Steps"),
        csv=lambda row: " ".join(f"{step.kind}:{step.state}" for step in row.steps.all()),
    ),
    Column(key="model_version", label=gettext_lazy("Began with")),
    Column(key="created_by", label=gettext_lazy("By"), sort="created_by__username"),
    Column(key="created_at", label=gettext_lazy("Submitted"), sort="pk"),
)


@login_required
def pipelines(request: AuthenticatedRequest) -> HttpResponseBase:
    table = Table(
        request,
        selectors.pipelines_visible(request.user),
        columns=COLUMNS,
        filters=PipelineFilter(request.GET, user=request.user),
    )
    if table.wants_csv:
        return table.csv(filename="pipelines.csv")
    changing = any(row.state == PipelineState.RUNNING for row in table.rows)
    return show(
        request, "workflows/pipelines.html", {"table": table}, fragment="rows", changing=changing
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """For each thing that can be done to the pipeline, why it cannot be done now; empty where it can."""

    cancel: str
    retry: str
    clone: str
    wave: str


@login_required
def pipeline(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """``?tab=`` is ``overview`` or ``events``."""
    found = get_object_or_404(selectors.pipelines_visible(request.user), uid=uid)
    steps = list(found.steps.all())
    tab = "events" if request.GET.get("tab") == "events" else "overview"
    page = reverse("pipeline", args=[uid])
    context: dict[str, Any] = {
        "pipeline": found,
        "rows": [row_of(step) for step in steps],
        "held": selectors.held_step(steps),
        "stands_at": _stands_at(found, steps),
        "acts": _acts(request, found, steps),
        "tabs": [
            Tab(
                label=pgettext("pipeline", "Steps"),
                href=page,
                current=tab == "overview",
                count=len(steps),
            ),
            Tab(label=_("Events"), href=f"{page}?tab=events", current=tab == "events"),
        ],
    }
    if tab == "events":
        context["events"] = selectors.events_of(found)
    changing = found.state == PipelineState.RUNNING
    return show(request, f"workflows/{tab}.html", context, fragment="live", changing=changing)


def _stands_at(found: Pipeline, steps: list[Step]) -> Step | None:
    """The step at which one that has failed or was cancelled goes on."""
    if not selectors.can_be_retried(found):
        return None
    return next((step for step in steps if step.state not in ("succeeded", "skipped")), None)


def _acts(request: AuthenticatedRequest, found: Pipeline, steps: list[Step]) -> Acts:
    role = cancel = retry = wave = ""
    held = accounts.roles_of(request.user, found.team)
    if not all(allows(held, needed) for needed in permissions_of(services.kinds_of(found))):
        role = _(
            "Your role in team %(team)s lets you look, not run; an administrator can change that."
        ) % {"team": found.team}
    if found.state not in (PipelineState.RUNNING, PipelineState.HELD):
        cancel = _("It has ended already.")
    elif found.cancel_requested_at is not None:
        cancel = _("It is being cancelled already.")
    if not selectors.can_be_retried(found):
        retry = _("Only a pipeline that failed or was cancelled is taken up again.")
    if found.state not in (PipelineState.HELD, PipelineState.SUCCEEDED) or not (
        selectors.held_step(steps)
    ):
        wave = _("No gate holds it.")
    clone = "" if fits(found) else _("Its steps do not fit the form; submit it again by REST.")
    return Acts(cancel=role or cancel, retry=role or retry, clone=role or clone, wave=role or wave)


def _found_for(request: AuthenticatedRequest, uid: str) -> Pipeline:
    """A pipeline that they may act on.

    :raises PermissionRefused: if they may only look at it.
    """
    found: Pipeline = get_object_or_404(selectors.pipelines_visible(request.user), uid=uid)
    services.steps_require(request.user, services.kinds_of(found), team=found.team)
    return found


@row_action(load=_found_for, page="pipeline")
def pipeline_cancel(request: AuthenticatedRequest, found: Pipeline) -> str:
    services.pipeline_cancel(pipeline=found, actor=request.user, at=timezone.now())
    return _("The pipeline is being cancelled.")


@row_action(load=_found_for, page="pipeline")
def pipeline_retry(request: AuthenticatedRequest, found: Pipeline) -> str:
    services.pipeline_retry(pipeline=found, actor=request.user, at=timezone.now())
    return _("The pipeline goes on.")


@login_required
@require_POST
def pipeline_wave(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Past the gate that it missed, with a reason that is kept."""
    found = _found_for(request, uid)
    reason = request.POST.get("reason", "")
    return run_action(
        request,
        lambda: services.gate_wave(
            pipeline=found, actor=request.user, reason=reason, at=timezone.now()
        ),
        back=reverse("pipeline", args=[uid]),
        done=_("The pipeline goes on past the gate."),
        refusals=(IllegalTransition, SpecRefused, AcceptanceRefused),
    )
