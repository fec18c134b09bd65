"""Pipelines of the test company: the engine and cluster are those of the tests, and so are all figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from apps.jobs.models import Attempt
from apps.workflows import services
from apps.workflows.models import Pipeline, Step
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.pipelines.lifecycle import Gate, PipelineState, StepKind
from controlplane.ports.clusters import ReplicaPhase
from tests.integration.company import ENGINE, Company, model_contents, quantized_contents

F, E, Q, D = StepKind.FINETUNE, StepKind.EVALUATE, StepKind.QUANTIZE, StepKind.DEPLOY
WELL = {"exact_match": 0.9, "perplexity": 3.0}
BADLY = {"exact_match": 0.4, "perplexity": 30.0}
#: What a quantization measures of a model that lost nothing.
UNCHANGED = {"perplexity_before": 3.0, "perplexity_after": 3.0}
#: What jobs of a kind make, where that is not a plain model.
CONTENTS: Mapping[str, Callable[[], dict[str, bytes]]] = {
    JobKind.EVALUATE: lambda: {"report.json": b"{}"},
    JobKind.QUANTIZE: quantized_contents,
}


def step(company: Company, kind: StepKind, **changes: Any) -> services.StepRequest:
    """As a person would ask for it."""
    asked: dict[str, Any] = {"kind": kind, "engine": ENGINE}
    if kind is StepKind.DEPLOY:
        asked["deployment_name"] = "parser"
    else:
        asked["dataset_version"] = company.dataset
    if kind in (StepKind.FINETUNE, StepKind.QUANTIZE):
        asked["output_name"] = "parser" if kind is StepKind.FINETUNE else "parser-small"
    if kind is StepKind.EVALUATE:
        asked["spec"] = {"metrics": ["exact_match", "perplexity"]}
    return services.StepRequest(**{**asked, **changes})


def wanted(company: Company, *steps: services.StepRequest | StepKind) -> services.PipelineRequest:
    return services.PipelineRequest(
        name="addresses",
        model_version=company.model,
        queue=company.queue,
        steps=tuple(step(company, each) if isinstance(each, StepKind) else each for each in steps),
    )


def submit(company: Company, *steps: services.StepRequest | StepKind) -> Pipeline:
    return services.pipeline_submit(
        actor=company.engineer, team=company.team, request=wanted(company, *steps)
    )


def gated(company: Company, kind: StepKind = StepKind.EVALUATE, **gate: Any) -> Any:
    condition = {"metric": "exact_match", "threshold": 0.8, **gate}
    return step(company, kind, gate=Gate(**condition))


def processes_act(company: Company, metrics: Mapping[str, Any] = WELL) -> None:
    """What happens outside of the control plane: engines answer, programs start, report and end."""
    for name in company.cluster.names():
        phase = company.phase_of(name)
        if phase is ReplicaPhase.PREPARING:
            company.cluster.run(name)
        elif phase is ReplicaPhase.RUNNING and name.startswith("attempt-"):
            attempt = Attempt.objects.select_related("job").get(uid=name.removeprefix("attempt-"))
            contents = CONTENTS.get(attempt.job.kind, model_contents)()
            measured = (
                {**UNCHANGED, **metrics} if attempt.job.kind == JobKind.QUANTIZE else dict(metrics)
            )
            company.finish(attempt, contents, measured)


def turn(company: Company) -> None:
    """Every loop once, as the beat does."""
    company.turn_pipelines()
    company.turn_deployments()
    company.schedule()
    company.turn_jobs()
    company.turn_deployments()


def drive(
    company: Company,
    pipeline: Pipeline,
    *,
    metrics: Mapping[str, Any] = WELL,
    until: Callable[[], bool] | None = None,
) -> Pipeline:
    """Let time pass until it rests, or until ``until``.

    :raises AssertionError: if that never comes.
    """
    for _ in range(80):
        turn(company)
        pipeline.refresh_from_db()
        if until() if until else pipeline.state != PipelineState.RUNNING:
            return pipeline
        processes_act(company, metrics)
        company.later(timedelta(seconds=2))
    steps = [(one.kind, one.state, one.state_reason) for one in pipeline_steps(pipeline)]
    raise AssertionError(f"{pipeline.state} ({pipeline.state_reason}): {steps}")


def pipeline_steps(pipeline: Pipeline) -> list[Step]:
    rows = Step.objects.filter(pipeline=pipeline).order_by("number")
    return list(
        rows.select_related("job", "deployment", "output_version", "model_version", "revision")
    )


def states(pipeline: Pipeline) -> list[str]:
    return [one.state for one in pipeline_steps(pipeline)]
