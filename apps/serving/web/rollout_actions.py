"""Actions on the rollout of a deployment: pause, resume, undo."""

from __future__ import annotations

from django.utils import timezone
from django.utils.translation import gettext as _

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.jobs.services import SpecRefused
from apps.serving.models import Deployment
from apps.serving.services import rollouts
from apps.serving.web.deployment_actions import changeable_deployment_or_404
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.web.pages import row_action_view

_action = row_action_view(
    load=changeable_deployment_or_404, page="deployment", refusals=(IllegalTransition, SpecRefused)
)


@_action
def rollout_pause(request: AuthenticatedRequest, found: Deployment) -> str:
    rollouts.rollout_pause(deployment=found, actor=request.user, at=timezone.now())
    return _("The rollout is paused.")


@_action
def rollout_resume(request: AuthenticatedRequest, found: Deployment) -> str:
    rollouts.rollout_resume(deployment=found, actor=request.user, at=timezone.now())
    return _("The rollout continues.")


@_action
def rollout_undo(request: AuthenticatedRequest, found: Deployment) -> str:
    returned = rollouts.rollout_undo(deployment=found, actor=request.user, at=timezone.now())
    return _("Rolling back to revision %(n)d.") % {"n": returned.number}
