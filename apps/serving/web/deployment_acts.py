"""What is done to a deployment that is there: scale, stop, start, go back, delete."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.web.requests import SignedIn
from apps.jobs.services import SpecRefused
from apps.serving.models import Deployment
from apps.serving.services import deployments as services
from apps.serving.services.configurations import Configuration
from apps.serving.web.deployments import found_visible
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.permissions import Permission
from controlplane.web.pages import acted, acting


def found_for(request: SignedIn, uid: str) -> Deployment:
    """A deployment that they may change.

    :raises PermissionRefused: if they may only look at it.
    """
    found = found_visible(request, uid)
    accounts.require(request.user, Permission.DEPLOY, team=found.team)
    return found


_REFUSALS = (IllegalTransition, SpecRefused)
_act = acting(found=found_for, page="deployment", refusals=_REFUSALS)


@login_required
@require_POST
def deployment_scale(request: SignedIn, uid: str) -> HttpResponse:
    found = found_for(request, uid)
    wanted = request.POST.get("replicas", "")
    if not wanted.isdecimal():
        messages.error(request, _("Replicas must be a whole number, got “%(n)s”.") % {"n": wanted})
        return redirect("deployment", uid=uid)
    return acted(
        request,
        lambda: services.deployment_scale(
            deployment=found, replicas=int(wanted), actor=request.user, at=timezone.now()
        ),
        back=reverse("deployment", args=[uid]),
        done=_("It is being scaled to %(n)s.") % {"n": wanted},
        refusals=_REFUSALS,
    )


@_act
def deployment_stop(request: SignedIn, found: Deployment) -> str:
    services.deployment_stop(deployment=found, actor=request.user, at=timezone.now())
    return _("It is being stopped.")


@_act
def deployment_start(request: SignedIn, found: Deployment) -> str:
    services.deployment_start(deployment=found, actor=request.user, at=timezone.now())
    return _("It is starting.")


@acting(found=found_for, page="deployment", refusals=_REFUSALS, query="tab=revisions")
def deployment_roll_back(request: SignedIn, found: Deployment, number: int) -> str:
    """A new revision with the configuration of an earlier one."""
    earlier = get_object_or_404(
        found.revisions.select_related("model_version__line", "model_version__artifact"),
        number=number,
    )
    services.deployment_revise(
        deployment=found,
        configuration=Configuration.of(earlier),
        actor=request.user,
        at=timezone.now(),
    )
    return _("It is going back to the configuration of revision %(n)d.") % {"n": number}


@login_required
@require_POST
def deployment_delete(request: SignedIn, uid: str) -> HttpResponse:
    """Only with its name typed: callers of that name get nothing from then on."""
    found = found_for(request, uid)
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
