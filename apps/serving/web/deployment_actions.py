"""Actions on deployments: create, revise, scale, stop, start, roll back, delete, and those on rollouts."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.accounts.services import IdempotentRequestInProgress
from apps.accounts.web.form_idempotency import run_once_per_form
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.jobs.services import SpecRefused
from apps.models import selectors as models
from apps.models.models import ModelVersion
from apps.models.selectors.sizing import SizingRefused
from apps.models.web.sizing import estimate_context
from apps.quotas import selectors as quotas
from apps.quotas.models import Queue
from apps.serving import selectors
from apps.serving.models import Deployment, Revision
from apps.serving.selectors.revision_configurations import (
    RevisionConfiguration,
    default_configuration,
    replica_memory,
    replica_node_counts,
    revision_configuration_check,
)
from apps.serving.services import deployments as services
from apps.serving.services import rollouts
from apps.serving.web.deployments import visible_deployment_or_404
from apps.serving.web.forms import DeploymentForm, RevisionConfigurationForm, RevisionForm
from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.web.forms import has_only_required_errors, submitted_data
from controlplane.web.pages import render_form, row_action_view, run_action, save_form
from controlplane.web.reasons import render_reason


@login_required
def deployment_new(request: AuthenticatedRequest) -> HttpResponse:
    data = submitted_data(request)
    form = DeploymentForm(
        data, user=request.user, initial={} if data is not None else _initial_values(request)
    )

    def create() -> str:
        values = form.cleaned_data
        return services.deployment_create(
            actor=request.user,
            team=values["team"],
            name=values["name"],
            configuration=form.configuration(),
            queue=values["queue"],
            replicas=values["replicas"],
            strategy=form.strategy(),
        ).uid

    def save() -> tuple[str, bool]:
        team = form.cleaned_data["team"]
        accounts.require_permission(request.user, Permission.DEPLOY, team=team)
        return run_once_per_form(request, create)

    refusals = {SpecRefused: "", IdempotentRequestInProgress: ""}
    if saved := save_form(form, save, refusals=refusals):
        deployment_uid, created = saved
        if created:
            name = form.cleaned_data["name"]
            messages.success(request, _("Deployment %(name)s is starting.") % {"name": name})
        return redirect("deployment", uid=deployment_uid)
    check = reverse("deployment-check")
    return render_form(request, "serving/deployment_new.html", form, check=check)


def _initial_values(request: AuthenticatedRequest) -> dict[str, Any]:
    """Initial values: the model in ``?model=``, and an available name for its deployment."""
    uid = request.GET.get("model", "")
    version = models.model_versions_usable(request.user).filter(uid=uid).first() if uid else None
    if version is None:
        return {}
    return {"model_version": uid, "name": selectors.first_available_route_name(version.line.name)}


@login_required
@require_POST
def deployment_check(request: AuthenticatedRequest) -> HttpResponse:
    """Validate the form of a new deployment without saving: its errors, or what will happen."""
    form = DeploymentForm(request.POST, user=request.user)
    if form.is_valid():
        form.check_name()
        form.add_findings(
            revision_configuration_check(
                form.configuration(), replicas=form.cleaned_data["replicas"]
            )
        )
        form.add_findings(tuple(form.strategy().findings()))
    return _configuration_check(request, form, queue=form.cleaned_data.get("queue"))


@login_required
@require_POST
def deployment_fields(request: AuthenticatedRequest) -> HttpResponse:
    """The form fields that depend on the chosen model, chip and engine."""
    form = DeploymentForm(initial=_entered_values(request), user=request.user)
    return render(request, "serving/engine_fields.html", {"form": form})


def _entered_values(request: AuthenticatedRequest) -> dict[str, Any]:
    """The values in the form, not validated."""
    return {name: value for name, value in request.POST.items() if value}


@login_required
@require_POST
def revision_check(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Validate the form of a new revision without saving."""
    found = visible_deployment_or_404(request, uid)
    newest = selectors.newest_revision(found)
    form = RevisionForm(request.POST, user=request.user, newest=newest)
    if form.is_valid():
        replicas = max(1, found.replica_count)
        form.add_findings(revision_configuration_check(form.configuration(), replicas=replicas))
        form.add_findings(tuple(form.strategy().findings()))
    return _configuration_check(request, form, queue=found.queue, deployment=found)


def _configuration_check(
    request: AuthenticatedRequest,
    form: RevisionConfigurationForm,
    *,
    queue: Queue | None,
    deployment: Deployment | None = None,
) -> HttpResponse:
    wrong = form.labelled_errors
    context: dict[str, Any] = {
        "wrong": wrong,
        "unfilled": has_only_required_errors(form),
        "values": form.cleaned_data,
        "deployment": deployment,
        "queue": queue,
    }
    if not wrong and queue is not None:
        values = form.cleaned_data
        replicas = deployment.replica_count if deployment else values["replicas"]
        context["adapters"] = [one.name for one in form.configuration().adapters]
        context["replicas"] = replicas
        context["nodes"], context["node_cards"] = replica_node_counts(
            [values["chip"]], values["cards"]
        )
        limits = form.strategy().limits(replicas=max(1, replicas))
        context["limits"] = limits
        # A rollout needs cards for its surge only: the others are those of the replicas that it replaces.
        context["cards"] = values["cards"] * (
            min(limits.max_surge, replicas) if deployment else replicas
        )
        context["place"] = quotas.queue_position(queue=queue, chips=[values["chip"]])
        context |= _memory_context(form.configuration())
    return render(request, "serving/deployment_check.html", context)


def _memory_context(configuration: RevisionConfiguration) -> dict[str, Any]:
    """The memory estimate of a replica, or why there is none."""
    try:
        return estimate_context(replica_memory(configuration))
    except SizingRefused as refusal:
        return {"memory_refusal": "; ".join(render_reason(one.message) for one in refusal.findings)}


@login_required
@require_POST
def deployment_create_with_defaults(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Deploy a model version with one click: its own name if available, one replica on cards that hold it."""
    version = get_object_or_404(models.model_versions_visible(request.user), uid=uid)
    team = _team_for(request, version)
    queue = quotas.default_queue_of_team(team) if team else None
    if team is None or queue is None:
        messages.error(
            request, _("No team with an open queue. Ask an administrator to open a queue.")
        )
        return redirect("model-version", uid=uid)
    accounts.require_permission(request.user, Permission.DEPLOY, team=team)
    name = selectors.first_available_route_name(version.line.name)
    try:
        deployment_uid, created = run_once_per_form(
            request,
            lambda: (
                services.deployment_create(
                    actor=request.user,
                    team=team,
                    name=name,
                    configuration=default_configuration(version),
                    queue=queue,
                ).uid
            ),
        )
    except (SpecRefused, SizingRefused, IdempotentRequestInProgress) as refusal:
        messages.error(request, render_reason(str(refusal)))
        return redirect("model-version", uid=uid)
    if created:
        messages.success(request, _("Deployment %(name)s is starting.") % {"name": name})
    return redirect("deployment", uid=deployment_uid)


def _team_for(request: AuthenticatedRequest, version: ModelVersion) -> Team | None:
    """The model's own team; for a shared model the user's default team."""
    return version.line.team or accounts.default_team(request.user)


@login_required
def deployment_revise(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """The form of a new revision; traffic shifts to it once its replicas are ready."""
    found = changeable_deployment_or_404(request, uid)
    newest = selectors.newest_revision(found)
    form = RevisionForm(submitted_data(request), user=request.user, newest=newest)

    def save() -> Revision:
        return services.deployment_revise(
            deployment=found,
            configuration=form.configuration(),
            actor=request.user,
            at=timezone.now(),
            strategy=form.strategy(),
        )

    if save_form(form, save, refusals={SpecRefused: "", IllegalTransition: ""}):
        messages.success(request, _("The new revision is starting."))
        return redirect("deployment", uid=uid)
    check = reverse("revision-check", args=[uid])
    context = {"deployment": found, "newest": newest, "check": check}
    return render_form(request, "serving/revision_new.html", form, **context)


def changeable_deployment_or_404(request: AuthenticatedRequest, uid: str) -> Deployment:
    """A deployment that the user may change, or 404.

    :raises PermissionRefused: if the user may only view it.
    """
    found = visible_deployment_or_404(request, uid)
    accounts.require_permission(request.user, Permission.DEPLOY, team=found.team)
    return found


_REFUSALS = (IllegalTransition, SpecRefused)
_action = row_action_view(load=changeable_deployment_or_404, page="deployment", refusals=_REFUSALS)


@login_required
@require_POST
def deployment_scale(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = changeable_deployment_or_404(request, uid)
    requested = request.POST.get("replicas", "")
    if not requested.isdecimal():
        messages.error(
            request, _("Replicas is “%(n)s”; it must be a whole number.") % {"n": requested}
        )
        return redirect("deployment", uid=uid)
    return run_action(
        request,
        lambda: services.deployment_scale(
            deployment=found, replicas=int(requested), actor=request.user, at=timezone.now()
        ),
        back=reverse("deployment", args=[uid]),
        done=_("Scaling the deployment to %(n)s replicas.") % {"n": requested},
        refusals=_REFUSALS,
    )


@_action
def deployment_stop(request: AuthenticatedRequest, found: Deployment) -> str:
    services.deployment_stop(deployment=found, actor=request.user, at=timezone.now())
    return _("The deployment is stopping.")


@_action
def deployment_start(request: AuthenticatedRequest, found: Deployment) -> str:
    services.deployment_start(deployment=found, actor=request.user, at=timezone.now())
    return _("The deployment is starting.")


@_action
def deployment_rollout_pause(request: AuthenticatedRequest, found: Deployment) -> str:
    rollouts.rollout_pause(deployment=found, actor=request.user, at=timezone.now())
    return _("The rollout is paused.")


@_action
def deployment_rollout_resume(request: AuthenticatedRequest, found: Deployment) -> str:
    rollouts.rollout_resume(deployment=found, actor=request.user, at=timezone.now())
    return _("The rollout continues.")


@_action
def deployment_rollout_undo(request: AuthenticatedRequest, found: Deployment) -> str:
    returned = rollouts.rollout_undo(deployment=found, actor=request.user, at=timezone.now())
    return _("Rolling back to revision %(n)d.") % {"n": returned.number}


@row_action_view(
    load=changeable_deployment_or_404, page="deployment", refusals=_REFUSALS, query="tab=revisions"
)
def deployment_roll_back(request: AuthenticatedRequest, found: Deployment, number: int) -> str:
    """Return to an earlier revision, or create one with its configuration."""
    get_object_or_404(found.revisions, number=number)
    rollouts.rollout_undo(
        deployment=found, to_revision=number, actor=request.user, at=timezone.now()
    )
    return _("Rolling back to revision %(n)d.") % {"n": number}


@login_required
@require_POST
def deployment_delete(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Delete a deployment; the user must type its name to confirm."""
    found = changeable_deployment_or_404(request, uid)
    if request.POST.get("name") != found.name:
        messages.error(request, _("Not deleted: the entered name does not match."))
        return redirect("deployment", uid=uid)
    try:
        deleted = services.deployment_delete(
            deployment=found, actor=request.user, at=timezone.now()
        )
    except IllegalTransition as refusal:
        messages.error(request, str(refusal))
        return redirect("deployment", uid=uid)
    done = (
        _("Deployment %(name)s was deleted.")
        if deleted
        else _("Deployment %(name)s is being deleted.")
    )
    messages.success(request, done % {"name": found.name})
    return redirect("deployments")
