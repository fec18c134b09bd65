"""Pipelines, as far as they have come."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from apps.accounts.models import Team, User
from apps.models.models import DatasetVersion, ModelVersion
from apps.quotas.models import Queue
from apps.workflows import services as workflows
from apps.workflows.models import Pipeline
from apps.workflows.services.pipelines import step_transition
from controlplane.domain.pipelines.lifecycle import (
    Gate,
    PipelineEvent,
    StepEvent,
    StepKind,
    evaluate_gate,
)


def pipeline(
    *,
    actor: User,
    team: Team,
    queue: Queue,
    model: ModelVersion,
    dataset: DatasetVersion,
    name: str = "the whole way",
    state: str = "running",
    serve_as: str = "",
) -> Pipeline:
    """Fine-tune, evaluate behind a gate and deploy, as far as it is in that state; nothing runs of it.

    ``state`` is ``running``, ``failed``, ``held`` or ``cancelled``.
    """
    kinds = [StepKind.FINETUNE, StepKind.EVALUATE, StepKind.DEPLOY]
    gate = Gate(metric="exact_match", threshold=0.8)
    asked = [
        workflows.StepRequest(
            kind=kind,
            dataset_version=None if kind is StepKind.DEPLOY else dataset,
            output_name="addresses" if kind is StepKind.FINETUNE else "",
            deployment_name=(serve_as or f"{name.replace(' ', '-')}") if kind is kinds[-1] else "",
            gate=gate if kind is StepKind.EVALUATE else None,
        )
        for kind in kinds
    ]
    created = workflows.pipeline_submit(
        actor=actor,
        team=team,
        request=workflows.PipelineRequest(
            name=name, model_version=model, queue=queue, steps=tuple(asked)
        ),
    )
    at = timezone.now()
    tune, measure, _serve = created.steps.order_by("number")
    begin: dict[str, Any] = {"at": at, "reason": "waiting for cards", "began_at": at}
    step_transition(tune, StepEvent.BEGIN, model_version=model, **begin)
    if state == "running":
        return created
    if state == "cancelled":
        reason = f"cancelled by {actor.username}"
        step_transition(tune, StepEvent.CANCEL, at=at, reason=reason, ended_at=at)
        workflows.pipeline_transition(created, PipelineEvent.CANCEL, at=at, reason=reason)
        return created
    if state == "failed":
        reason = "ended with exit code 28: the disk is full"
        step_transition(tune, StepEvent.FAIL, at=at, reason=reason, ended_at=at)
        reason_text = f"step 1 failed: {reason}"
        workflows.pipeline_transition(created, PipelineEvent.FAIL, at=at, reason=reason_text)
        return created
    step_transition(tune, StepEvent.SUCCEED, at=at, reason="made addresses", ended_at=at)
    step_transition(measure, StepEvent.BEGIN, model_version=model, **begin)
    verdict = evaluate_gate(gate, metrics={"exact_match": 0.61})
    step_transition(
        measure,
        StepEvent.MISS,
        at=at,
        reason=verdict.reason,
        ended_at=at,
        metrics={"exact_match": 0.61},
        gate_passed=False,
        gate_verdict=verdict.reason,
    )
    reason_text = f"step 2 did not pass its gate: {verdict.reason}"
    workflows.pipeline_transition(created, PipelineEvent.HOLD, at=at, reason=reason_text)
    return created
