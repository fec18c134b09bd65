"""What somebody wants done in a row, and everything that may be wrong with it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from apps.accounts.models import Team
from apps.jobs.services import JobRequest, engine_for, job_check
from apps.models.models import DatasetVersion, ModelVersion
from apps.quotas.models import Queue
from apps.serving.models import Deployment
from apps.serving.selectors.configurations import RevisionConfiguration, configuration_check
from apps.workflows.models import Pipeline, Step
from apps.workflows.selectors import task_of
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.pipelines import Gate, StepKind, gate_refusal, order_refusal
from controlplane.domain.quantization import SCHEMES
from controlplane.domain.serving.lifecycle import DEPLOYMENT, DeploymentEvent, DeploymentState
from controlplane.ports import registry

_LONGEST_JOB_NAME = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest:
    """One step that somebody wants."""

    kind: StepKind
    #: Empty leaves the choice to the product.
    engine: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    chips: tuple[str, ...] = ("cpu",)
    cards: int = 1
    dataset_version: DatasetVersion | None = None
    output_name: str = ""
    deployment_name: str = ""
    #: None is as many as the deployment has, and one for a new deployment.
    replicas: int | None = None
    gate: Gate | None = None

    @property
    def chosen_engine(self) -> str:
        """Empty for a deployment of which nobody says: serving chooses by the model that is there then."""
        if self.engine or self.kind is StepKind.DEPLOY:
            return self.engine
        return engine_for(task_of(self.kind), chips=self.chips)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRequest:
    """The steps, and what the first of them works on."""

    name: str
    model_version: ModelVersion
    queue: Queue
    steps: tuple[StepRequest, ...]

    @property
    def kinds(self) -> tuple[StepKind, ...]:
        return tuple(step.kind for step in self.steps)


def pipeline_check(request: PipelineRequest, *, team: Team) -> tuple[FieldFinding, ...]:
    """Everything wrong with the request; empty means that it can be submitted.

    What is wrong with a step is told by the step's number, from 1: ``steps.2.learning_rate``. A step that works
    on what an earlier one will make is checked with a likeness of that: the version as it is now, in the
    format that it will have.
    """
    findings: list[FieldFinding] = []
    if not request.name.strip():
        findings.append(FieldFinding(field="name", message="give the pipeline a name"))
    if refusal := order_refusal(request.kinds):
        findings.append(FieldFinding(field="steps", message=refusal))
    likeness = request.model_version
    for number, step in enumerate(request.steps, start=1):
        for finding in _step_findings(step, request=request, team=team, version=likeness):
            shared = finding.field in ("model_version", "team", "queue")
            place = finding.field if shared else f"steps.{number}.{finding.field}"
            findings.append(replace(finding, field=place))
        likeness = _likeness_after(step, likeness)
    # Each step says what is wrong with the version that all of them begin with.
    return tuple(dict.fromkeys(findings))


def _step_findings(
    step: StepRequest, *, request: PipelineRequest, team: Team, version: ModelVersion
) -> Iterator[FieldFinding]:
    if step.kind is StepKind.DEPLOY:
        yield from _deployment_findings(step, team=team)
        yield from configuration_check(_configuration(step, version), replicas=replicas_of(step))
    else:
        wanted = job_request(
            step, name=request.name or "pipeline", queue=request.queue, version=version
        )
        yield from job_check(wanted)
    if step.gate is None:
        return
    measured = _measured(step) if step.kind is StepKind.EVALUATE else None
    if refusal := gate_refusal(step.kind, step.gate, measured=measured):
        yield FieldFinding(field="gate", message=refusal)


def _measured(step: StepRequest) -> list[str] | None:
    """The figures that the evaluation will measure; None where that cannot be told."""
    if step.chosen_engine not in registry.engine_names():
        return None
    normalise = registry.engine(step.chosen_engine).normalise
    metrics = normalise(task_of(step.kind), step.spec).get("metrics")
    return metrics if isinstance(metrics, list) and metrics else None


def _deployment_findings(step: StepRequest, *, team: Team) -> Iterator[FieldFinding]:
    name = step.deployment_name
    if not name:
        yield FieldFinding(field="deployment_name", message="name the deployment")
        return
    found = Deployment.objects.filter(name=name, deleted_at=None).first()
    if found is None:
        return
    if found.team_id != team.pk:
        message = f"{name!r} is taken; model names are unique across the company, choose another"
        yield FieldFinding(field="deployment_name", message=message)
    elif not DEPLOYMENT.allows(DeploymentState(found.state), DeploymentEvent.CHANGE):
        message = f"the deployment {name} is {found.state}; start it first, or choose another name"
        yield FieldFinding(field="deployment_name", message=message)
    elif step.replicas not in (None, found.replica_count):
        message = (
            f"must be {found.replica_count}, as the deployment {name} has now, got {step.replicas}; "
            "a pipeline scales no deployment that is there: scale it on its own page"
        )
        yield FieldFinding(field="replicas", message=message)


def replicas_of(step: StepRequest) -> int:
    """How many a deployment gets where nobody says."""
    if step.replicas is not None:
        return step.replicas
    found = Deployment.objects.filter(name=step.deployment_name, deleted_at=None).first()
    return found.replica_count if found else 1


def _likeness_after(step: StepRequest, version: ModelVersion) -> ModelVersion:
    """What the step will make of the version, as far as others judge it by that; never saved."""
    if step.kind is not StepKind.QUANTIZE or step.chosen_engine not in registry.engine_names():
        return version
    engine = registry.engine(step.chosen_engine)
    likeness = copy.copy(version)
    scheme = str(engine.normalise(task_of(step.kind), step.spec).get("scheme"))
    likeness.scheme = SCHEMES[scheme].short if scheme in SCHEMES else ""
    # An engine that writes several formats has not said which it will be.
    formats = engine.profile().formats
    likeness.format = next(iter(formats)) if len(formats) == 1 else ""
    return likeness


def job_request(step: StepRequest, *, name: str, queue: Queue, version: ModelVersion) -> JobRequest:
    """The job of a step that is no deployment."""
    return JobRequest(
        kind=JobKind(step.kind.value),
        name=name[:_LONGEST_JOB_NAME],
        spec=step.spec,
        queue=queue,
        engine=step.chosen_engine,
        model_version=version,
        dataset_version=step.dataset_version,
        output_name=step.output_name,
        chips=step.chips,
        cards=step.cards,
    )


def _configuration(step: StepRequest, version: ModelVersion) -> RevisionConfiguration:
    return RevisionConfiguration(
        model_version=version,
        engine=step.chosen_engine,
        spec=step.spec,
        chips=step.chips,
        cards=step.cards,
    )


def request_of(step: Step) -> StepRequest:
    """What was asked of a step, to be asked of others now."""
    return StepRequest(
        kind=StepKind(step.kind),
        engine=step.engine,
        spec=step.spec,
        chips=tuple(step.chips),
        cards=step.cards,
        dataset_version=step.dataset_version,
        output_name=step.output_name,
        deployment_name=step.deployment_name,
        replicas=step.replicas,
        gate=step.condition,
    )


def job_of(step: Step, *, pipeline: Pipeline, version: ModelVersion) -> JobRequest:
    """The job that does the step."""
    ending = f" · {step.number} {step.kind}"
    name = pipeline.name[: _LONGEST_JOB_NAME - len(ending)] + ending
    return job_request(request_of(step), name=name, queue=pipeline.queue, version=version)


def configuration_of(step: Step, *, version: ModelVersion) -> RevisionConfiguration:
    """What the deployment that does the step is to serve."""
    return _configuration(request_of(step), version)
