"""The lives of pipelines: what people do to them. Every move of a pipeline passes here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.selectors import RequestUser, require
from apps.accounts.services import audit
from apps.jobs.services import SpecRefused
from apps.models.services.acceptances import version_accept
from apps.workflows import selectors
from apps.workflows.models import Pipeline, PipelineTransition, Step, StepTransition
from apps.workflows.services.requests import PipelineRequest, pipeline_check, replicas_of
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.models import Acceptance
from controlplane.domain.pipelines import (
    PIPELINE,
    RETRIABLE,
    STEP,
    PipelineEvent,
    PipelineState,
    StepEvent,
    StepKind,
    StepState,
    permissions_of,
)
from controlplane.outbox.messages import publish
from controlplane.persistence.models import new_uid
from controlplane.persistence.state_transitions import apply_transition

LONGEST_REASON = 500


def steps_require(user: RequestUser, kinds: Sequence[StepKind], *, team: Team) -> None:
    """:raises PermissionRefused: unless they may run jobs, and deploy where a step deploys."""
    for permission in permissions_of(kinds):
        require(user, permission, team=team)


def kinds_of(pipeline: Pipeline) -> list[StepKind]:
    """In their order."""
    return [StepKind(step.kind) for step in pipeline.steps.all()]


@transaction.atomic
def pipeline_submit(*, actor: User, team: Team, request: PipelineRequest) -> Pipeline:
    """The new pipeline, its first step about to begin.

    :raises SpecRefused: if anything is wrong with it; nothing is kept then.
    """
    if findings := pipeline_check(request, team=team):
        raise SpecRefused(findings)
    pipeline = Pipeline.objects.create(
        team=team,
        created_by=actor,
        runs_as=actor,
        name=request.name.strip(),
        model_version=request.model_version,
        queue=request.queue,
        state_reason="about to begin",
    )
    for number, step in enumerate(request.steps, start=1):
        Step.objects.create(
            pipeline=pipeline,
            number=number,
            kind=step.kind,
            engine=step.chosen_engine,
            spec=dict(step.spec),
            chips=list(step.chips),
            cards=step.cards,
            dataset_version=step.dataset_version,
            output_name=step.output_name,
            deployment_name=step.deployment_name,
            replicas=replicas_of(step),
            gate=step.gate.as_json() if step.gate else None,
        )
    audit(
        actor=actor,
        action="pipeline.submit",
        team=team,
        uid=pipeline.uid,
        name=pipeline.name,
        steps=[kind.value for kind in request.kinds],
    )
    publish("pipeline.changed", pipeline_uid=pipeline.uid)
    return pipeline


@transaction.atomic
def pipeline_cancel(*, pipeline: Pipeline, actor: User, at: datetime) -> bool:
    """Ask for the end of a pipeline and of the step that runs. Says whether this request was the first.

    :raises IllegalTransition: if it has ended already.
    """
    row = _locked(pipeline)
    if not PIPELINE.allows(PipelineState(row.state), PipelineEvent.CANCEL):
        raise IllegalTransition(machine=PIPELINE.name, state=row.state, event=PipelineEvent.CANCEL)
    if row.cancel_requested_at is not None:
        return False
    row.cancel_requested_at, row.cancel_requested_by = at, actor
    row.save(update_fields=["cancel_requested_at", "cancel_requested_by"])
    audit(actor=actor, action="pipeline.cancel", team=row.team, uid=row.uid, name=row.name)
    if row.state == PipelineState.HELD:
        # Nothing of it runs, so there is nothing to wait for.
        reason = f"cancelled by {actor.username}"
        pipeline_move(row, PipelineEvent.CANCEL, at=at, reason=reason, actor=actor.username)
    else:
        publish("pipeline.changed", pipeline_uid=row.uid)
    return True


@transaction.atomic
def pipeline_retry(*, pipeline: Pipeline, actor: User, at: datetime) -> None:
    """Try the step again at which it ended, then go on; a job goes on from its newest checkpoint.

    :raises IllegalTransition: if it has neither failed nor was cancelled (two people pressing the button
        get one retry and one of these).
    """
    row = _locked(pipeline)
    if not selectors.can_be_retried(row):
        raise IllegalTransition(machine=PIPELINE.name, state=row.state, event="be tried again")
    for step in row.steps.filter(state__in=RETRIABLE).order_by("number"):
        reason = f"tried again by {actor.username}"
        step_move(step, StepEvent.RETRY, at=at, reason=reason, actor=actor.username, ended_at=None)
    audit(actor=actor, action="pipeline.retry", team=row.team, uid=row.uid, name=row.name)
    _go_on(row, actor=actor, at=at, reason=f"tried again by {actor.username}")


@transaction.atomic
def gate_wave(*, pipeline: Pipeline, actor: User, reason: str, at: datetime) -> Step:
    """Let the pipeline go on past the gate that it missed.

    A quantized version that was rejected becomes an accepted one by that.

    :raises IllegalTransition: if no gate holds it, or another waved it through already.
    :raises SpecRefused: without a reason.
    :raises AcceptanceRefused: if the version cannot be accepted any more.
    """
    given = reason.strip()
    if not given or len(given) > LONGEST_REASON:
        message = f"say in 1 to {LONGEST_REASON} characters why it may go on, got {len(given)}"
        raise SpecRefused([FieldFinding(field="reason", message=message)])
    row = _locked(pipeline)
    steps = selectors.steps_of(row)
    step = selectors.held_step(steps)
    if step is None or row.state not in (PipelineState.HELD, PipelineState.SUCCEEDED):
        raise IllegalTransition(machine=PIPELINE.name, state=row.state, event="be waved through")
    why = f"waved through by {actor.username}: {given}"
    waved = {"waved_by": actor.username, "waved_reason": given}
    if step.state == StepState.HELD:
        step_move(step, StepEvent.WAVE, at=at, reason=why, actor=actor.username, **waved)
    else:
        Step.objects.filter(pk=step.pk).update(state_reason=why, **waved)
    if step.made is not None and step.made.acceptance == Acceptance.REJECTED:
        version_accept(version=step.made, actor=actor, reason=given)
    for later in steps:
        if later.state == StepState.SKIPPED:
            step_move(later, StepEvent.RESUME, at=at, reason=why, actor=actor.username)
    audit(
        actor=actor,
        action="pipeline.wave",
        team=row.team,
        uid=row.uid,
        name=row.name,
        step=step.number,
        gate=step.gate,
        verdict=step.gate_verdict,
        reason=given,
    )
    _go_on(row, actor=actor, at=at, reason=why)
    return step


def _go_on(row: Pipeline, *, actor: User, at: datetime, reason: str) -> None:
    pipeline_move(
        row,
        PipelineEvent.GO_ON,
        at=at,
        reason=reason,
        actor=actor.username,
        runs_as=actor,
        cancel_requested_at=None,
        cancel_requested_by=None,
        ended_at=None,
    )
    publish("pipeline.changed", pipeline_uid=row.uid)


def _locked(pipeline: Pipeline) -> Pipeline:
    return (
        Pipeline.objects.select_for_update(no_key=True, of=("self",))
        .select_related("team", "created_by")
        .get(pk=pipeline.pk)
    )


@transaction.atomic
def pipeline_move(
    pipeline: Pipeline,
    event: PipelineEvent,
    *,
    at: datetime,
    reason: str,
    actor: str = "",
    lease_token: int | None = None,
    **changes: Any,
) -> None:
    """Move it, with the news where it has come to rest."""
    resting = event is not PipelineEvent.GO_ON
    if resting:
        changes["ended_at"] = at
    state = apply_transition(
        pipeline,
        PIPELINE,
        event,
        into=PipelineTransition,
        at=at,
        reason=reason,
        actor=actor,
        lease_token=lease_token,
        state_reason=reason,
        **changes,
    )
    if resting:
        asked = pipeline.cancel_requested_by
        publish(
            "pipeline.ended",
            event_uid=new_uid(),
            pipeline_uid=pipeline.uid,
            name=pipeline.name,
            team_uid=pipeline.team.uid,
            maker_uid=pipeline.created_by.uid,
            actor_name=asked.username if asked and event is PipelineEvent.CANCEL else "",
            state=state.value,
            reason=reason,
            at=at.isoformat(),
        )


def step_move(
    step: Step, event: StepEvent, *, at: datetime, reason: str, actor: str = "", **changes: Any
) -> None:
    """:raises IllegalTransition: if somebody moved it meanwhile."""
    apply_transition(
        step,
        STEP,
        event,
        into=StepTransition,
        at=at,
        reason=reason,
        actor=actor,
        state_reason=reason,
        **changes,
    )
