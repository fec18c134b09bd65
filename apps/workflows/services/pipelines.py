"""Pipelines: validation of requests, submission, cancellation, retry and gate overrides.

Every transition of a pipeline is made here.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.selectors import RequestUser, require_permission
from apps.accounts.services import record_audit_entry
from apps.jobs.services import JobRequest, SpecRefused, default_engine_for_task, job_request_check
from apps.models.models import DatasetVersion, ModelVersion
from apps.models.services.model_versions import model_version_accept
from apps.quotas.models import Queue
from apps.serving.models import Deployment
from apps.serving.selectors.revision_configurations import (
    RevisionConfiguration,
    revision_configuration_check,
)
from apps.workflows import selectors
from apps.workflows.models import Pipeline, PipelineTransition, Step, StepTransition
from apps.workflows.selectors import engine_task
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, field_finding
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.pipelines.lifecycle import (
    PIPELINE,
    RETRIABLE_STATES,
    STEP,
    Gate,
    PipelineEvent,
    PipelineState,
    StepEvent,
    StepKind,
    StepState,
    gate_error,
    permissions_for_steps,
    step_order_error,
)
from controlplane.domain.quantization.schemes import SCHEMES
from controlplane.domain.registry.versions import GateDecision
from controlplane.domain.serving.lifecycle import DEPLOYMENT, DeploymentEvent, DeploymentState
from controlplane.outbox.messages import publish_message
from controlplane.persistence.models import new_uid
from controlplane.persistence.state_transitions import apply_transition
from controlplane.ports import adapter_registry

_MAX_JOB_NAME_LENGTH = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest:
    kind: StepKind
    #: Empty: the product chooses.
    engine: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    chips: tuple[str, ...] = ("cpu",)
    cards: int = 1
    dataset_version: DatasetVersion | None = None
    output_name: str = ""
    deployment_name: str = ""
    #: None: unchanged for an existing deployment, one for a new one.
    replicas: int | None = None
    gate: Gate | None = None

    @property
    def chosen_engine(self) -> str:
        """Empty for a deployment without an engine: serving chooses one for the model at that time."""
        if self.engine or self.kind is StepKind.DEPLOY:
            return self.engine
        return default_engine_for_task(engine_task(self.kind), chips=self.chips)


#: Fields of a step that are those of its request.
_COPIED = ("kind", "cards", "dataset_version", "output_name", "deployment_name")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRequest:
    """The steps and the input of the first."""

    name: str
    model_version: ModelVersion
    queue: Queue
    steps: tuple[StepRequest, ...]

    @property
    def kinds(self) -> tuple[StepKind, ...]:
        return tuple(step.kind for step in self.steps)


def pipeline_check(request: PipelineRequest, *, team: Team) -> tuple[FieldFinding, ...]:
    """Every finding of the request; empty means that it can be submitted.

    Findings of a step have its number, from 1, in their field: ``steps.2.learning_rate``. A step that works on the
    output of an earlier one is checked with the expected version: the current version in the format that it will
    have.
    """
    findings: list[FieldFinding] = []
    if not request.name.strip():
        findings.append(
            field_finding("name", "pipeline.name.missing", "enter a name for the pipeline")
        )
    if refusal := step_order_error(request.kinds):
        findings.append(FieldFinding(field="steps", message=refusal))
    expected_version = request.model_version
    for number, step in enumerate(request.steps, start=1):
        for finding in _step_findings(step, request=request, team=team, version=expected_version):
            shared = finding.field in ("model_version", "team", "queue")
            place = finding.field if shared else f"steps.{number}.{finding.field}"
            findings.append(replace(finding, field=place))
        expected_version = _expected_version(step, expected_version)
    # Each step reports the same findings of the first version.
    return tuple(dict.fromkeys(findings))


def _step_findings(
    step: StepRequest, *, request: PipelineRequest, team: Team, version: ModelVersion
) -> Iterator[FieldFinding]:
    if step.kind is StepKind.DEPLOY:
        yield from _deployment_findings(step, team=team)
        yield from revision_configuration_check(
            _deployment_configuration(step, version), replicas=default_replicas(step)
        )
    else:
        wanted = job_request_of_step_request(
            step, name=request.name or "pipeline", queue=request.queue, version=version
        )
        yield from job_request_check(wanted)
    if step.gate is None:
        return
    measured_metrics = _measured_metrics(step) if step.kind is StepKind.EVALUATE else None
    if refusal := gate_error(step.kind, step.gate, measured_metrics=measured_metrics):
        yield FieldFinding(field="gate", message=refusal)


def _measured_metrics(step: StepRequest) -> list[str] | None:
    """Metrics that the evaluation will measure; None if that is unknown."""
    if step.chosen_engine not in adapter_registry.engine_names():
        return None
    normalise = adapter_registry.engine_by_name(step.chosen_engine).normalise
    metrics = normalise(engine_task(step.kind), step.spec).get("metrics")
    return metrics if isinstance(metrics, list) and metrics else None


def _deployment_findings(step: StepRequest, *, team: Team) -> Iterator[FieldFinding]:
    name = step.deployment_name
    if not name:
        yield field_finding(
            "deployment_name", "pipeline.deployment.name_missing", "enter a name for the deployment"
        )
        return
    found = Deployment.objects.filter(name=name, deleted_at=None).first()
    if found is None:
        return
    if found.team_id != team.pk:
        yield field_finding(
            "deployment_name",
            "deployment.name.already_exists",
            "{name} is already in use; model names are unique across the company, choose another",
            name=repr(name),
        )
    elif not DEPLOYMENT.allows(DeploymentState(found.state), DeploymentEvent.CHANGE):
        yield field_finding(
            "deployment_name",
            "pipeline.deployment.not_running",
            "deployment {deployment} is {state}; start it first, or choose another name",
            deployment=name,
            state=found.state,
        )
    elif step.replicas not in (None, found.replica_count):
        yield field_finding(
            "replicas",
            "pipeline.deployment.replicas_mismatch",
            "the number of replicas must be {expected}, the current number of replicas "
            "of deployment {deployment}, got {value}; a pipeline does not scale an "
            "existing deployment: scale it on its own page",
            expected=found.replica_count,
            deployment=name,
            value=step.replicas,
        )


def default_replicas(step: StepRequest) -> int:
    """Replicas of a deployment if the request does not say."""
    if step.replicas is not None:
        return step.replicas
    found = Deployment.objects.filter(name=step.deployment_name, deleted_at=None).first()
    return found.replica_count if found else 1


def _expected_version(step: StepRequest, version: ModelVersion) -> ModelVersion:
    """The version that the step will create, as far as checks depend on it; never saved."""
    if (
        step.kind is not StepKind.QUANTIZE
        or step.chosen_engine not in adapter_registry.engine_names()
    ):
        return version
    engine = adapter_registry.engine_by_name(step.chosen_engine)
    expected_version = copy.copy(version)
    scheme = str(engine.normalise(engine_task(step.kind), step.spec).get("scheme"))
    expected_version.scheme = SCHEMES[scheme].short if scheme in SCHEMES else ""
    # If an engine writes several formats, the format is not known yet.
    formats = engine.profile().formats
    expected_version.format = next(iter(formats)) if len(formats) == 1 else ""
    return expected_version


def job_request_of_step_request(
    step: StepRequest, *, name: str, queue: Queue, version: ModelVersion
) -> JobRequest:
    """The job of a step that is not a deployment."""
    return JobRequest(
        kind=JobKind(step.kind.value),
        name=name[:_MAX_JOB_NAME_LENGTH],
        spec=step.spec,
        queue=queue,
        engine=step.chosen_engine,
        model_version=version,
        dataset_version=step.dataset_version,
        output_name=step.output_name,
        chips=step.chips,
        cards=step.cards,
    )


def _deployment_configuration(step: StepRequest, version: ModelVersion) -> RevisionConfiguration:
    return RevisionConfiguration(
        model_version=version,
        engine=step.chosen_engine,
        spec=step.spec,
        chips=step.chips,
        cards=step.cards,
    )


def step_request(step: Step) -> StepRequest:
    """The request of a step, for another submission."""
    copied = {name: getattr(step, name) for name in (*_COPIED, "engine", "spec", "replicas")}
    return StepRequest(
        **{**copied, "kind": StepKind(step.kind)}, chips=tuple(step.chips), gate=step.condition
    )


def step_job_request(step: Step, *, pipeline: Pipeline, version: ModelVersion) -> JobRequest:
    ending = f" · {step.number} {step.kind}"
    name = pipeline.name[: _MAX_JOB_NAME_LENGTH - len(ending)] + ending
    return job_request_of_step_request(
        step_request(step), name=name, queue=pipeline.queue, version=version
    )


def step_configuration(step: Step, *, version: ModelVersion) -> RevisionConfiguration:
    """The configuration of the deployment of the step."""
    return _deployment_configuration(step_request(step), version)


MAX_REASON_LENGTH = 500


def steps_require_permissions(user: RequestUser, kinds: Sequence[StepKind], *, team: Team) -> None:
    """:raises PermissionRefused: unless the user may run jobs, and deploy if a step deploys."""
    for permission in permissions_for_steps(kinds):
        require_permission(user, permission, team=team)


def step_kinds(pipeline: Pipeline) -> list[StepKind]:
    return [StepKind(step.kind) for step in pipeline.steps.all()]


@transaction.atomic
def pipeline_submit(*, actor: User, team: Team, request: PipelineRequest) -> Pipeline:
    """Create the pipeline with its first step about to begin.

    :raises SpecRefused: if anything in the request is invalid; nothing is stored then.
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
        state_reason=Reason("pipeline.state.starting", "starting"),
    )
    for number, step in enumerate(request.steps, start=1):
        Step.objects.create(
            **{name: getattr(step, name) for name in _COPIED},
            pipeline=pipeline,
            number=number,
            engine=step.chosen_engine,
            spec=dict(step.spec),
            chips=list(step.chips),
            replicas=default_replicas(step),
            gate=step.gate.as_json() if step.gate else None,
        )
    record_audit_entry(
        pipeline,
        actor=actor,
        action="pipeline.submit",
        team=team,
        steps=[kind.value for kind in request.kinds],
    )
    publish_message("pipeline.changed", pipeline_uid=pipeline.uid)
    return pipeline


@transaction.atomic
def pipeline_cancel(*, pipeline: Pipeline, actor: User, at: datetime) -> bool:
    """Request cancellation of a pipeline and its running step; return whether this request was the first.

    :raises IllegalTransition: if it has already ended.
    """
    row = _lock_pipeline(pipeline)
    if not PIPELINE.allows(PipelineState(row.state), PipelineEvent.CANCEL):
        raise IllegalTransition(machine=PIPELINE.name, state=row.state, event=PipelineEvent.CANCEL)
    if row.cancel_requested_at is not None:
        return False
    row.cancel_requested_at, row.cancel_requested_by = at, actor
    row.save(update_fields=["cancel_requested_at", "cancel_requested_by"])
    record_audit_entry(row, actor=actor, action="pipeline.cancel")
    if row.state == PipelineState.HELD:
        # No step is running.
        reason = Reason("transition.by_user.cancelled", "cancelled by {user}", user=actor.username)
        pipeline_transition(row, PipelineEvent.CANCEL, at=at, reason=reason, actor=actor.username)
    else:
        publish_message("pipeline.changed", pipeline_uid=row.uid)
    return True


@transaction.atomic
def pipeline_retry(*, pipeline: Pipeline, actor: User, at: datetime) -> None:
    """Retry the step at which it ended and resume; a job resumes from its newest checkpoint.

    :raises IllegalTransition: if it has neither failed nor been cancelled (of two concurrent requests one gets
        this).
    """
    row = _lock_pipeline(pipeline)
    if not selectors.pipeline_can_be_retried(row):
        raise IllegalTransition(machine=PIPELINE.name, state=row.state, event="be tried again")
    for step in row.steps.filter(state__in=RETRIABLE_STATES).order_by("number"):
        reason = Reason("transition.by_user.retried", "retried by {user}", user=actor.username)
        step_transition(
            step, StepEvent.RETRY, at=at, reason=reason, actor=actor.username, ended_at=None
        )
    record_audit_entry(row, actor=actor, action="pipeline.retry")
    _resume_pipeline(
        row,
        actor=actor,
        at=at,
        reason=Reason("transition.by_user.retried", "retried by {user}", user=actor.username),
    )


@transaction.atomic
def gate_override(*, pipeline: Pipeline, actor: User, reason: str, at: datetime) -> Step:
    """Let the pipeline continue past the gate that it missed.

    A rejected quantized version is accepted by this.

    :raises IllegalTransition: if no gate holds it, or the gate has already been overridden.
    :raises SpecRefused: without a reason.
    :raises GateOverrideRefused: if the version can no longer be accepted.
    """
    given = reason.strip()
    if not given or len(given) > MAX_REASON_LENGTH:
        raise SpecRefused.of(
            "reason",
            "pipeline.gate_override.invalid_reason",
            "enter a reason of 1 to {limit} characters, got {length}",
            limit=MAX_REASON_LENGTH,
            length=len(given),
        )
    row = _lock_pipeline(pipeline)
    steps = selectors.pipeline_steps(row)
    step = selectors.step_held_by_gate(steps)
    if step is None or row.state not in (PipelineState.HELD, PipelineState.SUCCEEDED):
        raise IllegalTransition(machine=PIPELINE.name, state=row.state, event="be approved anyway")
    explanation = Reason(
        "pipeline.gate_override.approved",
        "approved despite the failed gate by {user}: {reason}",
        user=actor.username,
        reason=given,
    )
    override = {"overridden_by": actor.username, "override_reason": given}
    if step.state == StepState.HELD:
        step_transition(
            step,
            StepEvent.OVERRIDE,
            at=at,
            reason=explanation,
            actor=actor.username,
            **override,
        )
    else:
        Step.objects.filter(pk=step.pk).update(state_reason=explanation, **override)
    if step.output_version is not None and step.output_version.acceptance == GateDecision.REJECTED:
        model_version_accept(version=step.output_version, actor=actor, reason=given)
    for later in steps:
        if later.state == StepState.SKIPPED:
            step_transition(
                later, StepEvent.RESUME, at=at, reason=explanation, actor=actor.username
            )
    record_audit_entry(
        row,
        actor=actor,
        action="pipeline.approve_anyway",
        step=step.number,
        gate=step.gate,
        verdict=step.gate_verdict,
        reason=given,
    )
    _resume_pipeline(row, actor=actor, at=at, reason=explanation)
    return step


def _resume_pipeline(row: Pipeline, *, actor: User, at: datetime, reason: str) -> None:
    pipeline_transition(
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
    publish_message("pipeline.changed", pipeline_uid=row.uid)


def _lock_pipeline(pipeline: Pipeline) -> Pipeline:
    return (
        Pipeline.objects.select_for_update(no_key=True, of=("self",))
        .select_related("team", "created_by")
        .get(pk=pipeline.pk)
    )


@transaction.atomic
def pipeline_transition(
    pipeline: Pipeline,
    event: PipelineEvent,
    *,
    at: datetime,
    reason: str,
    actor: str = "",
    lease_token: int | None = None,
    **changes: Any,
) -> None:
    """Make a transition, and publish a message if the pipeline stops running."""
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
        publish_message(
            "pipeline.ended",
            event_uid=new_uid(),
            pipeline_uid=pipeline.uid,
            name=pipeline.name,
            team_uid=pipeline.team.uid,
            creator_uid=pipeline.created_by.uid,
            actor_name=asked.username if asked and event is PipelineEvent.CANCEL else "",
            state=state.value,
            reason=reason,
            at=at.isoformat(),
        )


def step_transition(
    step: Step, event: StepEvent, *, at: datetime, reason: str, actor: str = "", **changes: Any
) -> None:
    """:raises IllegalTransition: if the step was moved concurrently."""
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
