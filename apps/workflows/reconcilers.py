"""The pipeline controller.

Each run leases pipelines, plans the next action of each, and performs it: begin a step, check whether it has
ended, or end the pipeline. A run that dies at any point can be repeated: a step's job is submitted in the
transaction that moves the step.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from apps.workflows import selectors, services
from apps.workflows.models import Pipeline, Step
from controlplane.domain.common.reasons import Reason
from controlplane.domain.pipelines.lifecycle import (
    FINAL_EVENTS,
    MAX_STEPS,
    NextAction,
    PipelineAction,
    PipelineState,
    StepState,
    next_pipeline_action,
)
from controlplane.persistence.leases import reconcile_rows

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
BATCH = 32
#: Each step begins and ends at most once per run; more would be an endless loop.
_MAX_ACTIONS = 2 * MAX_STEPS + 1


def pipelines_reconcile(*, at: datetime, uid: str | None = None) -> int:
    """Reconcile running pipelines, or one of them; return their number."""
    rows = Pipeline.objects.filter(state=PipelineState.RUNNING).select_related(
        "team", "created_by", "runs_as", "queue", "model_version__line", "cancel_requested_by"
    )
    if uid is not None:
        rows = rows.filter(uid=uid)
    return reconcile_rows(
        rows,
        lambda pipeline: _advance_pipeline(pipeline, at),
        limit=BATCH,
        ttl=LEASE,
        record_error=_record_pipeline_reason,
    )


def _record_pipeline_reason(pipeline: Pipeline, reason: str) -> None:
    rows = Pipeline.objects.filter(pk=pipeline.pk, lease_token=pipeline.lease_token)
    rows.exclude(state_reason=reason).update(state_reason=reason)


def _advance_pipeline(pipeline: Pipeline, at: datetime) -> None:
    """Perform actions until the pipeline has to wait."""
    for _ in range(_MAX_ACTIONS):
        steps = selectors.pipeline_steps(pipeline)
        next_action = next_pipeline_action(
            [StepState(step.state) for step in steps],
            cancelling=pipeline.cancel_requested_at is not None,
        )
        if next_action.action in FINAL_EVENTS:
            services.pipeline_transition(
                pipeline,
                FINAL_EVENTS[next_action.action],
                at=at,
                reason=_pipeline_stop_reason(pipeline, next_action, steps),
                lease_token=pipeline.lease_token,
            )
            return
        if next_action.step_index is None or not _apply_pipeline_action(
            next_action.action, steps[next_action.step_index], pipeline=pipeline, at=at
        ):
            return


def _apply_pipeline_action(
    action: PipelineAction, step: Step, *, pipeline: Pipeline, at: datetime
) -> bool:
    """Perform it; return whether the step has moved, so that there may be more to do immediately."""
    if action is PipelineAction.FOLLOW:
        return services.step_observe(step, pipeline=pipeline, at=at)
    if action is PipelineAction.STOP:
        return services.step_stop(step, pipeline=pipeline, at=at)
    try:
        services.step_begin(step, pipeline=pipeline, at=at)
    except services.StepRefused as refusal:
        services.step_fail(step, pipeline=pipeline, at=at, reason=str(refusal))
    return True


def _pipeline_stop_reason(pipeline: Pipeline, next_action: NextAction, steps: list[Step]) -> str:
    """Why the pipeline stops running."""
    if next_action.action is PipelineAction.CANCEL:
        asked = pipeline.cancel_requested_by
        return (
            Reason("transition.by_user.cancelled", "cancelled by {user}", user=asked.username)
            if asked
            else "cancelled"
        )
    if next_action.step_index is not None:
        step = steps[next_action.step_index]
        if next_action.action is PipelineAction.HOLD:
            return Reason(
                "pipeline.state.gate_not_passed",
                "step {step} did not pass its gate: {verdict}",
                step=step.number,
                verdict=step.gate_verdict,
            )
        return Reason(
            "pipeline.state.step_failed",
            "step {step} failed: {reason}",
            step=step.number,
            reason=step.state_reason,
        )
    missed = selectors.step_held_by_gate(steps)
    if missed is not None:
        return Reason(
            "pipeline.state.ended_at_gate",
            "ended at the gate of step {step}: {verdict}",
            step=missed.number,
            verdict=missed.gate_verdict,
        )
    return Reason("pipeline.state.succeeded", "all steps have finished")
