"""Pages of deployments."""

from __future__ import annotations

from collections.abc import Callable

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
from apps.serving import selectors
from apps.serving.models import Deployment
from apps.serving.services import deployments as services
from apps.serving.web.forms import DeploymentForm, RevisionForm
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.permissions import Permission
from controlplane.domain.serving import (
    DEPLOYMENT,
    DeploymentEvent,
    DeploymentState,
)
from controlplane.web.pages import acted, keyset, show

SETTLED = (DeploymentState.READY, DeploymentState.STOPPED)
EVENTS_SHOWN = 50


@login_required
def deployments(request: SignedIn) -> HttpResponse:
    rows = selectors.deployments_with_revisions(request.user)
    page = keyset(rows, before=request.GET.get("before", ""))
    changing = any(row.state not in SETTLED for row in page.rows)
    return show(
        request, "serving/deployments.html", {"page": page}, fragment="rows", changing=changing
    )


@login_required
def deployment_new(request: SignedIn) -> HttpResponse:
    bound = request.method == "POST"
    chosen = {"model_version": request.GET.get("model", "")}
    form = DeploymentForm(request.POST if bound else None, user=request.user, initial=chosen)
    if bound and form.is_valid():
        values = form.cleaned_data
        accounts.require(request.user, Permission.DEPLOY, team=values["team"])
        try:
            made = services.deployment_create(
                actor=request.user,
                team=values["team"],
                name=values["name"],
                configuration=form.configuration(),
                queue=values["queue"],
                replicas=values["replicas"],
            )
        except SpecRefused as refusal:
            form.add_findings(refusal.findings)
        else:
            messages.success(request, _("%(name)s is starting.") % {"name": made.name})
            return redirect("deployment", uid=made.uid)
    status = 422 if bound else 200
    return render(request, "serving/deployment_new.html", {"form": form}, status=status)


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
                    configuration=services.Configuration(model_version=version),
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
def deployment(request: SignedIn, uid: str) -> HttpResponse:
    found = get_object_or_404(selectors.deployments_visible(request.user), uid=uid)
    revisions = list(found.revisions.select_related("model_version__line", "created_by"))
    state = DeploymentState(found.state)
    context = {
        "deployment": found,
        "revisions": revisions,
        "revision": revisions[0],
        "replicas": list(selectors.live_replicas(found).order_by("id")),
        "events": list(found.transitions.order_by("-id")[:EVENTS_SHOWN]),
        "usage": selectors.usage_totals(
            selectors.usage_visible(request.user).filter(route=found.name)
        ),
        "may_change": DEPLOYMENT.allows(state, DeploymentEvent.CHANGE),
        "may_stop": DEPLOYMENT.allows(state, DeploymentEvent.STOP),
        "may_start": DEPLOYMENT.allows(state, DeploymentEvent.START),
        "may_delete": state is DeploymentState.STOPPED,
    }
    changing = state not in SETTLED
    return show(request, "serving/deployment.html", context, fragment="live", changing=changing)


def _found_for(request: SignedIn, uid: str) -> Deployment:
    """A deployment that they may change.

    :raises PermissionRefused: if they may only look at it.
    """
    found: Deployment = get_object_or_404(selectors.deployments_visible(request.user), uid=uid)
    accounts.require(request.user, Permission.DEPLOY, team=found.team)
    return found


def _act(
    request: SignedIn, found: Deployment, action: Callable[[], object], *, done: str
) -> HttpResponse:
    return acted(
        request,
        action,
        back=reverse("deployment", args=[found.uid]),
        done=done,
        refusals=(IllegalTransition, SpecRefused),
    )


@login_required
def deployment_revise(request: SignedIn, uid: str) -> HttpResponse:
    """The form of a new revision; traffic moves to it once its replicas are ready."""
    found = _found_for(request, uid)
    newest = selectors.newest_revision(found)
    shown = {
        "model_version": newest.model_version.uid,
        "chip": newest.chips[0],
        "cards": newest.cards,
        "precision": newest.spec.get("precision"),
        "queue_size": newest.spec.get("queue_size"),
    }
    bound = request.method == "POST"
    form = RevisionForm(request.POST if bound else None, user=request.user, initial=shown)
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
    context = {"form": form, "deployment": found}
    return render(request, "serving/revise.html", context, status=422 if bound else 200)


@login_required
@require_POST
def deployment_scale(request: SignedIn, uid: str) -> HttpResponse:
    found = _found_for(request, uid)
    wanted = request.POST.get("replicas", "")
    if not wanted.isdecimal():
        messages.error(request, _("Replicas must be a whole number, got “%(n)s”.") % {"n": wanted})
        return redirect("deployment", uid=uid)
    return _act(
        request,
        found,
        lambda: services.deployment_scale(
            deployment=found, replicas=int(wanted), actor=request.user, at=timezone.now()
        ),
        done=_("It is being scaled to %(n)s.") % {"n": wanted},
    )


@login_required
@require_POST
def deployment_stop(request: SignedIn, uid: str) -> HttpResponse:
    found = _found_for(request, uid)
    return _act(
        request,
        found,
        lambda: services.deployment_stop(deployment=found, actor=request.user, at=timezone.now()),
        done=_("It is being stopped."),
    )


@login_required
@require_POST
def deployment_start(request: SignedIn, uid: str) -> HttpResponse:
    found = _found_for(request, uid)
    return _act(
        request,
        found,
        lambda: services.deployment_start(deployment=found, actor=request.user, at=timezone.now()),
        done=_("It is starting."),
    )


@login_required
@require_POST
def deployment_delete(request: SignedIn, uid: str) -> HttpResponse:
    """Only with its name typed: callers of that name get nothing from then on."""
    found = _found_for(request, uid)
    if request.POST.get("name") != found.name:
        messages.error(request, _("Nothing was deleted: the name typed is not its name."))
        return redirect("deployment", uid=uid)
    try:
        services.deployment_delete(deployment=found, actor=request.user, at=timezone.now())
    except IllegalTransition as refusal:
        messages.error(request, str(refusal))
        return redirect("deployment", uid=uid)
    messages.success(request, _("%(name)s was deleted.") % {"name": found.name})
    return redirect("deployments")
