"""Rollouts of a deployment: pause, resume, undo, and the strategy. The reconciler moves them on."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.jobs.services import SpecRefused
from apps.serving.models import Deployment, Revision
from apps.serving.selectors import newest_revision, routed_revision
from apps.serving.selectors.revision_configurations import RevisionConfiguration
from apps.serving.services.deployments import (
    adapter_routes_prune,
    deployment_revise,
    deployment_transition,
    lock_deployment,
    record_deployment_change,
    strategy_store,
)
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.serving.lifecycle import DeploymentEvent
from controlplane.domain.serving.rollouts import RolloutStrategy
from controlplane.outbox.messages import publish_message

_MACHINE = "rollout"


@transaction.atomic
def rollout_pause(*, deployment: Deployment, actor: User, at: datetime) -> None:
    """Pause the rollout in progress, and every later one until the deployment is resumed.

    :raises IllegalTransition: if it is paused already, or the deployment is stopped or being stopped.
    """
    row = lock_deployment(deployment)
    if row.paused_at is not None:
        raise IllegalTransition(machine=_MACHINE, state="paused", event="be paused again")
    reason = Reason("deployment.rollout.paused", "rollout paused by {user}", user=actor.username)
    deployment_transition(
        row, DeploymentEvent.PAUSE, at=at, reason=reason, actor=actor.username, paused_at=at
    )
    _record_rollout_action(row, actor=actor, action="deployment.pause_rollout")


@transaction.atomic
def rollout_resume(*, deployment: Deployment, actor: User, at: datetime) -> None:
    """Resume rollouts; the progress deadline starts again.

    :raises IllegalTransition: if they are not paused, or the deployment is stopped or being stopped.
    """
    row = lock_deployment(deployment)
    if row.paused_at is None:
        raise IllegalTransition(machine=_MACHINE, state="not paused", event="be resumed")
    reason = Reason("deployment.rollout.resumed", "rollout resumed by {user}", user=actor.username)
    deployment_transition(
        row,
        DeploymentEvent.RESUME,
        at=at,
        reason=reason,
        actor=actor.username,
        paused_at=None,
        resumed_at=at,
    )
    _record_rollout_action(row, actor=actor, action="deployment.resume_rollout")


def _record_rollout_action(row: Deployment, *, actor: User, action: str) -> None:
    record_audit_entry(row, actor=actor, action=action)
    publish_message("deployment.changed", deployment_uid=row.uid)


def rollout_undo(
    *, deployment: Deployment, actor: User, at: datetime, to_revision: int | None = None
) -> Revision:
    """Return to an earlier revision, which the result is or has the configuration of.

    While a rollout is in progress, a return to the revision that serves keeps its replicas and only stops the new
    ones. Otherwise a new revision with the earlier configuration is rolled out.

    :param to_revision: its number; None for the revision that serves while a rollout is in progress, or else the
        one before the newest.
    :raises IllegalTransition: if the rollout is paused, or the deployment is stopped or being stopped.
    :raises SpecRefused: if there is no such revision, it is the newest one, or its configuration is not valid now.
    """
    returned = _return_to_serving(deployment, actor=actor, at=at, to_revision=to_revision)
    if returned is not None:
        return returned
    target = _undo_target(deployment, to_revision)
    return deployment_revise(
        deployment=deployment, configuration=RevisionConfiguration.of(target), actor=actor, at=at
    )


@transaction.atomic
def _return_to_serving(
    deployment: Deployment, *, actor: User, at: datetime, to_revision: int | None
) -> Revision | None:
    """Give up the rollout in progress; None if there is none, or another revision is wanted."""
    row = lock_deployment(deployment)
    if row.paused_at is not None:
        raise IllegalTransition(
            machine=_MACHINE, state="paused", event="be undone; resume it first"
        )
    newest, serving = newest_revision(row), routed_revision(row)
    if newest == serving or to_revision not in (None, serving.number):
        return None
    abandoned = row.revisions.filter(number__gt=serving.number, failed_at=None)
    abandoned.update(
        failed_at=at,
        failure_reason=Reason("rollout.undone", "undone by {user}", user=actor.username),
    )
    adapter_routes_prune(deployment=row)
    reason = Reason(
        "deployment.rollout.undone",
        "the rollout of revision {revision} was undone by {user}; revision {earlier} serves",
        revision=newest.number,
        earlier=serving.number,
        user=actor.username,
    )
    record_deployment_change(
        row, actor=actor, action="deployment.undo_rollout", at=at, reason=reason
    )
    return serving


def _undo_target(deployment: Deployment, number: int | None) -> Revision:
    newest = newest_revision(deployment)
    revisions = deployment.revisions.select_related(
        "model_version__line", "model_version__artifact"
    ).order_by("-number")
    if number is None:
        found = revisions.filter(number__lt=newest.number, failed_at=None).first()
        message = Reason(
            "deployment.rollout.no_earlier_revision",
            "revision {revision} is the first one; there is no earlier revision to return to",
            revision=newest.number,
        )
    else:
        found = revisions.filter(number=number).first()
        message = Reason(
            "deployment.revision.not_found",
            "revision {revision} does not exist; the newest is revision {newest}",
            revision=number,
            newest=revisions[0].number,
        )
    if found == newest:
        found = None
        message = Reason(
            "deployment.revision.is_newest",
            "revision {revision} is the one that the deployment has already",
            revision=newest.number,
        )
    if found is None:
        raise SpecRefused([FieldFinding(field="to_revision", message=message)])
    return found


@transaction.atomic
def rollout_strategy_set(*, deployment: Deployment, strategy: RolloutStrategy, actor: User) -> None:
    """Change how many replicas rollouts replace at a time, that in progress included.

    :raises SpecRefused: if the strategy is invalid.
    """
    if findings := tuple(strategy.findings()):
        raise SpecRefused(findings)
    row = lock_deployment(deployment)
    if strategy_store(row, strategy, actor=actor):
        publish_message("deployment.changed", deployment_uid=row.uid)
