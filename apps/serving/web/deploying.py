"""Forms by which a model comes to serve: a new deployment, a new revision, and the one press."""

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
from apps.accounts.services import IdempotencyBusy
from apps.accounts.web.repeats import done_once
from apps.accounts.web.requests import SignedIn
from apps.jobs.services import SpecRefused
from apps.models import selectors as models
from apps.models.models import ModelVersion
from apps.quotas import selectors as quotas
from apps.quotas.models import Queue
from apps.serving import selectors
from apps.serving.models import Deployment
from apps.serving.services import deployments as services
from apps.serving.services.configurations import Configuration, configuration_check
from apps.serving.web.deployment_acts import found_for
from apps.serving.web.deployments import found_visible
from apps.serving.web.forms import ConfigurationForm, DeploymentForm, RevisionForm
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.permissions import Permission
from controlplane.web.forms import only_unfilled


@login_required
def deployment_new(request: SignedIn) -> HttpResponse:
    bound = request.method == "POST"
    form = DeploymentForm(
        request.POST if bound else None,
        user=request.user,
        initial={} if bound else _suggested(request),
    )
    if bound and form.is_valid():
        values = form.cleaned_data
        accounts.require(request.user, Permission.DEPLOY, team=values["team"])
        try:
            made, now = done_once(
                request,
                lambda: (
                    services.deployment_create(
                        actor=request.user,
                        team=values["team"],
                        name=values["name"],
                        configuration=form.configuration(),
                        queue=values["queue"],
                        replicas=values["replicas"],
                    ).uid
                ),
            )
        except SpecRefused as refusal:
            form.add_findings(refusal.findings)
        except IdempotencyBusy as busy:
            form.add_error(None, str(busy))
        else:
            if now:
                messages.success(request, _("%(name)s is starting.") % {"name": values["name"]})
            return redirect("deployment", uid=made)
    context = {"form": form, "check": reverse("deployment-check")}
    return render(request, "serving/deployment_new.html", context, status=422 if bound else 200)


def _suggested(request: SignedIn) -> dict[str, Any]:
    """The model that the address names, and a name for it that nobody serves under."""
    uid = request.GET.get("model", "")
    version = models.model_versions_usable(request.user).filter(uid=uid).first() if uid else None
    if version is None:
        return {}
    return {"model_version": uid, "name": selectors.route_name_free(version.line.name)}


@login_required
@require_POST
def deployment_check(request: SignedIn) -> HttpResponse:
    """What is wrong with the form of a new deployment so far, or what will happen; nothing is kept."""
    form = DeploymentForm(request.POST, user=request.user)
    if form.is_valid():
        form.check_name()
        form.add_findings(
            configuration_check(form.configuration(), replicas=form.cleaned_data["replicas"])
        )
    return _checked(request, form, queue=form.cleaned_data.get("queue"))


@login_required
@require_POST
def deployment_fields(request: SignedIn) -> HttpResponse:
    """The fields that depend on model, chip and engine, for those that the form of a deployment has chosen."""
    form = DeploymentForm(initial=_typed(request), user=request.user)
    return render(request, "serving/engine_fields.html", {"form": form})


def _typed(request: SignedIn) -> dict[str, Any]:
    """What stands in the form, unchecked; nothing of it is wrong yet."""
    return {name: value for name, value in request.POST.items() if value}


@login_required
@require_POST
def revision_check(request: SignedIn, uid: str) -> HttpResponse:
    """The same for a new revision of a deployment."""
    found = found_visible(request, uid)
    newest = selectors.newest_revision(found)
    form = RevisionForm(request.POST, user=request.user, newest=newest)
    if form.is_valid():
        replicas = max(1, found.replica_count)
        form.add_findings(configuration_check(form.configuration(), replicas=replicas))
    return _checked(request, form, queue=found.queue, deployment=found)


def _checked(
    request: SignedIn,
    form: ConfigurationForm,
    *,
    queue: Queue | None,
    deployment: Deployment | None = None,
) -> HttpResponse:
    wrong = [
        (name, form.fields[name].label if name in form.fields else "", list(errors))
        for name, errors in form.errors.items()
    ]
    context: dict[str, Any] = {
        "wrong": wrong,
        "unfilled": only_unfilled(form),
        "values": form.cleaned_data,
        "deployment": deployment,
        "queue": queue,
    }
    if not wrong and queue is not None:
        values = form.cleaned_data
        replicas = deployment.replica_count if deployment else values["replicas"]
        context["replicas"] = replicas
        context["cards"] = replicas * values["cards"]
        context["place"] = quotas.place_of(queue=queue, chips=[values["chip"]])
    return render(request, "serving/deployment_check.html", context)


@login_required
@require_POST
def deployment_quick(request: SignedIn, uid: str) -> HttpResponse:
    """Serve a model version with one press: its own name if free, one replica, every default."""
    version = get_object_or_404(models.model_versions_visible(request.user), uid=uid)
    team = _team_for(request, version)
    queue = quotas.queue_default(team) if team else None
    if team is None or queue is None:
        messages.error(request, _("There is no team and open queue to deploy it with."))
        return redirect("model-version", uid=uid)
    accounts.require(request.user, Permission.DEPLOY, team=team)
    name = selectors.route_name_free(version.line.name)
    try:
        made, now = done_once(
            request,
            lambda: (
                services.deployment_create(
                    actor=request.user,
                    team=team,
                    name=name,
                    configuration=Configuration(model_version=version),
                    queue=queue,
                ).uid
            ),
        )
    except (SpecRefused, IdempotencyBusy) as refusal:
        messages.error(request, str(refusal))
        return redirect("model-version", uid=uid)
    if now:
        messages.success(request, _("%(name)s is starting.") % {"name": name})
    return redirect("deployment", uid=made)


def _team_for(request: SignedIn, version: ModelVersion) -> Team | None:
    """The model's own team; for a shared model the person's default."""
    return version.line.team or accounts.default_team(request.user)


@login_required
def deployment_revise(request: SignedIn, uid: str) -> HttpResponse:
    """The form of a new revision; traffic moves to it once its replicas are ready."""
    found = found_for(request, uid)
    newest = selectors.newest_revision(found)
    bound = request.method == "POST"
    form = RevisionForm(request.POST if bound else None, user=request.user, newest=newest)
    if bound and form.is_valid():
        try:
            services.deployment_revise(
                deployment=found,
                configuration=form.configuration(),
                actor=request.user,
                at=timezone.now(),
            )
        except SpecRefused as refusal:
            form.add_findings(refusal.findings)
        except IllegalTransition as refusal:
            form.add_error(None, str(refusal))
        else:
            messages.success(request, _("The new revision is starting beside the old one."))
            return redirect("deployment", uid=uid)
    context = {
        "form": form,
        "deployment": found,
        "newest": newest,
        "check": reverse("revision-check", args=[uid]),
    }
    return render(request, "serving/revise.html", context, status=422 if bound else 200)
