"""Pipelines in each of their states, on jobs and deployments that are there already."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from apps.jobs.models import Job
from apps.models.models import ModelVersion
from apps.serving.models import Deployment
from apps.workflows import services
from apps.workflows.models import Pipeline, Step
from apps.workflows.services.pipelines import step_transition
from controlplane.domain.pipelines.lifecycle import (
    ACCEPTED,
    Gate,
    GateFailureAction,
    PipelineEvent,
    StepEvent,
    StepKind,
    evaluate_gate,
)
from tests.e2e.demo.clock import ago, before
from tests.e2e.demo.fleet import Fleet
from tests.e2e.demo.jobs import Jobs
from tests.e2e.demo.reasons import sample_reason
from tests.e2e.demo.registry import Registry
from tests.e2e.demo.serving import Serving
from tests.e2e.demo.users import Users

BAR = Gate(metric="exact_match", threshold=0.7)
METRICS = {"exact_match": 0.7425, "label_accuracy": 0.9312, "perplexity": 1.384}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipelines:
    running: Pipeline
    held: Pipeline
    succeeded: Pipeline
    failed: Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Whose pipelines these are, and what they take and make."""

    users: Users
    fleet: Fleet
    known: Registry
    jobs: Jobs
    served: Serving


def pipelines(
    users: Users, fleet: Fleet, known: Registry, jobs: Jobs, served: Serving
) -> Pipelines:
    line = Line(users=users, fleet=fleet, known=known, jobs=jobs, served=served)
    _cancelled(line)
    return Pipelines(
        failed=_failed(line),
        succeeded=_succeeded(line),
        held=_held(line),
        running=_running(line),
    )


def _submit(line: Line, name: str, *, gate: Gate = BAR) -> Pipeline:
    data = line.known.addresses
    shrunk = Gate(metric=ACCEPTED, otherwise=GateFailureAction.SKIP)
    measured = {"metrics": ["exact_match", "label_accuracy", "perplexity"], "split": "test"}
    steps = (
        services.StepRequest(
            kind=StepKind.FINETUNE,
            dataset_version=data,
            output_name="address-parser",
            spec={"method": "full", "epochs": 3, "learning_rate": 0.0002},
        ),
        services.StepRequest(
            kind=StepKind.EVALUATE, dataset_version=data, spec=measured, gate=gate
        ),
        services.StepRequest(
            kind=StepKind.QUANTIZE,
            dataset_version=data,
            output_name="address-parser-w8a8",
            spec={"scheme": "w8a8-smoothquant"},
            gate=shrunk,
        ),
        services.StepRequest(kind=StepKind.EVALUATE, dataset_version=data, spec=measured),
        services.StepRequest(kind=StepKind.DEPLOY, deployment_name=line.served.ready.name),
    )
    return services.pipeline_submit(
        actor=line.users.ada,
        team=line.users.maps,
        request=services.PipelineRequest(
            name=name, model_version=line.known.base, queue=line.fleet.maps, steps=steps
        ),
    )


def _steps(pipeline: Pipeline) -> list[Step]:
    return list(pipeline.steps.order_by("number"))


def _begin(step: Step, *, hours: float, model: ModelVersion, **changes: Any) -> None:
    at = before(hours=hours)
    step_transition(
        step,
        StepEvent.BEGIN,
        at=at,
        reason=sample_reason("claim.pending.cards"),
        began_at=at,
        model_version=model,
        **changes,
    )


def _succeed(step: Step, *, hours: float, reason: str, **changes: Any) -> None:
    at = before(hours=hours)
    step_transition(step, StepEvent.SUCCEED, at=at, reason=reason, ended_at=at, **changes)


def _tuned(line: Line, step: Step, *, hours: float, job: Job) -> ModelVersion:
    version: ModelVersion = ModelVersion.objects.get(job_uid=job.uid)
    _begin(step, hours=hours, model=line.known.base, job=job)
    metrics = {"loss": 0.2931, "eval_loss": 0.3117}
    _succeed(
        step,
        hours=hours - 1.4,
        reason=sample_reason("attempt.output.version_created", version=str(version)),
        output_version=version,
        metrics=metrics,
    )
    return version


def _measured(step: Step, *, hours: float, model: ModelVersion, job: Job | None = None) -> None:
    _begin(step, hours=hours, model=model, job=job)
    changes: dict[str, Any] = {"metrics": METRICS}
    reason = f"evaluated {model}"
    if step.condition is not None:
        verdict = evaluate_gate(step.condition, metrics=METRICS)
        reason = verdict.reason
        changes |= {"gate_passed": verdict.passed, "gate_verdict": verdict.reason}
    _succeed(step, hours=hours - 0.3, reason=reason, **changes)


def _running(line: Line) -> Pipeline:
    with ago(hours=3):
        pipeline = _submit(line, "addresses, the whole way")
    tune, measure, shrink, _again, _serve = _steps(pipeline)
    tuned = _tuned(line, tune, hours=3, job=line.jobs.siblings[3])
    _measured(measure, hours=1.6, model=tuned, job=line.jobs.evaluation)
    _begin(shrink, hours=1.2, model=tuned)
    Pipeline.objects.filter(pk=pipeline.pk).update(
        state_reason=sample_reason("pipeline.state.step_running", step=3, steps=5)
    )
    return pipeline


def _held(line: Line) -> Pipeline:
    gate = Gate(metric="exact_match", threshold=0.8)
    with ago(hours=30):
        pipeline = _submit(line, "addresses, a stricter bar", gate=gate)
    tune, measure, *_rest = _steps(pipeline)
    tuned = _tuned(line, tune, hours=30, job=line.jobs.siblings[1])
    _begin(measure, hours=28, model=tuned)
    verdict = evaluate_gate(gate, metrics=METRICS)
    at = before(hours=27)
    step_transition(
        measure,
        StepEvent.MISS,
        at=at,
        reason=verdict.reason,
        ended_at=at,
        metrics=METRICS,
        gate_passed=False,
        gate_verdict=verdict.reason,
    )
    reason = f"step 2 did not pass its gate: {verdict.reason}"
    services.pipeline_transition(pipeline, PipelineEvent.HOLD, at=at, reason=reason)
    return pipeline


def _succeeded(line: Line) -> Pipeline:
    with ago(days=4):
        pipeline = _submit(line, "weekly address parser")
    tune, measure, shrink, again, serve = _steps(pipeline)
    tuned = _tuned(line, tune, hours=96, job=line.jobs.siblings[2])
    _measured(measure, hours=94, model=tuned)
    shrunk = line.jobs.tuned
    _begin(shrink, hours=93, model=tuned)
    verdict = evaluate_gate(Gate(metric=ACCEPTED), metrics={})
    _succeed(
        shrink,
        hours=92,
        reason=verdict.reason,
        output_version=shrunk,
        metrics={"size_before": 1_988_097_024, "size_after": 1_012_334_592},
        gate_passed=True,
        gate_verdict=verdict.reason,
    )
    _measured(again, hours=91, model=shrunk)
    deployment: Deployment = line.served.ready
    revision = deployment.revisions.order_by("-number")[0]
    _begin(serve, hours=90, model=shrunk, deployment=deployment, revision=revision)
    _succeed(serve, hours=89.9, reason=f"the deployment {deployment.name} serves {shrunk}")
    services.pipeline_transition(
        pipeline,
        PipelineEvent.SUCCEED,
        at=before(hours=89.9),
        reason=sample_reason("pipeline.state.succeeded"),
    )
    return pipeline


def _failed(line: Line) -> Pipeline:
    with ago(hours=19):
        pipeline = _submit(line, "longer sequences, the whole way")
    tune = _steps(pipeline)[0]
    job = line.jobs.failed
    _begin(tune, hours=19, model=line.known.base, job=job)
    at = before(hours=4)
    step_transition(tune, StepEvent.FAIL, at=at, reason=job.state_reason, ended_at=at)
    reason = f"step 1 failed: {job.state_reason}"
    services.pipeline_transition(pipeline, PipelineEvent.FAIL, at=at, reason=reason)
    return pipeline


def _cancelled(line: Line) -> None:
    with ago(days=6):
        pipeline = _submit(line, "wrong base")
    tune = _steps(pipeline)[0]
    _begin(tune, hours=144, model=line.known.base, job=line.jobs.cancelled)
    at = before(hours=143) + timedelta(minutes=5)
    reason = f"cancelled by {line.users.ada.username}"
    step_transition(tune, StepEvent.CANCEL, at=at, reason=reason, ended_at=at)
    services.pipeline_transition(pipeline, PipelineEvent.CANCEL, at=at, reason=reason)
