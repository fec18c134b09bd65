"""The life of pipelines, one turn at a time.

Each turn leases rows, asks the domain what is next, and does it: begin a step, look whether it has ended, or
bring the pipeline to rest. A turn that dies between any two lines is simply made again: a step's job is
submitted in the transaction that moves the step.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from apps.workflows import selectors, services
from apps.workflows.models import Pipeline, Step
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.pipelines import (
    MOST_STEPS,
    RESTS,
    Act,
    PipelineState,
    StepState,
    Turn,
    turn_of,
)
from controlplane.persistence.leases import lease_rows, release_row
from controlplane.persistence.state_transitions import LeaseLost

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
BATCH = 32
#: A step is begun and ended at most once in a turn; more would mean that it does not end.
_MOST_ACTS = 2 * MOST_STEPS + 1
#: What people are told where a turn met what it was not made for.
FAULT = "a fault of ours keeps it from going on; it is tried again, and the worker's log says more"


def pipelines_reconcile(*, at: datetime, uid: str | None = None) -> int:
    """Take one turn for each pipeline that runs; say how many were looked at."""
    rows = Pipeline.objects.filter(state=PipelineState.RUNNING).select_related(
        "team", "created_by", "runs_as", "queue", "model_version__line", "cancel_requested_by"
    )
    if uid is not None:
        rows = rows.filter(uid=uid)
    leased = lease_rows(rows, limit=BATCH, ttl=LEASE)
    for pipeline in leased:
        try:
            _go_on(pipeline, at)
        except (IllegalTransition, LeaseLost) as race:
            # Somebody changed it meanwhile; the next turn sees what is so now.
            log.info("a turn gave way", extra={"pipeline": pipeline.uid, "race": str(race)})
        except Exception:
            # One pipeline's trouble must not stop the others; the next turn looks again.
            log.exception("a turn failed", extra={"pipeline": pipeline.uid})
            _note(pipeline, FAULT)
        finally:
            release_row(pipeline)
    return len(leased)


def _note(pipeline: Pipeline, reason: str) -> None:
    rows = Pipeline.objects.filter(pk=pipeline.pk, lease_token=pipeline.lease_token)
    rows.exclude(state_reason=reason).update(state_reason=reason)


def _go_on(pipeline: Pipeline, at: datetime) -> None:
    """As far as can be gone without waiting."""
    for _ in range(_MOST_ACTS):
        steps = selectors.steps_of(pipeline)
        turn = turn_of(
            [StepState(step.state) for step in steps],
            cancelling=pipeline.cancel_requested_at is not None,
        )
        if turn.act in RESTS:
            services.pipeline_move(
                pipeline,
                RESTS[turn.act],
                at=at,
                reason=_why(pipeline, turn, steps),
                lease_token=pipeline.lease_token,
            )
            return
        if turn.at is None or not _act(turn.act, steps[turn.at], pipeline=pipeline, at=at):
            return


def _act(act: Act, step: Step, *, pipeline: Pipeline, at: datetime) -> bool:
    """Do it; say whether the step has moved, so that there may be more to do at once."""
    if act is Act.FOLLOW:
        return services.step_follow(step, pipeline=pipeline, at=at)
    if act is Act.STOP:
        return services.step_stop(step, pipeline=pipeline, at=at)
    try:
        services.step_begin(step, pipeline=pipeline, at=at)
    except services.StepRefused as refusal:
        services.step_fail(step, pipeline=pipeline, at=at, reason=str(refusal))
    return True


def _why(pipeline: Pipeline, turn: Turn, steps: list[Step]) -> str:
    """Why it comes to rest, in words."""
    if turn.act is Act.CANCEL:
        asked = pipeline.cancel_requested_by
        return f"cancelled by {asked.username}" if asked else "cancelled"
    if turn.at is not None:
        step = steps[turn.at]
        if turn.act is Act.HOLD:
            return f"step {step.number} misses its gate: {step.gate_verdict}"
        return f"step {step.number} failed: {step.state_reason}"
    missed = selectors.held_step(steps)
    if missed is not None:
        return f"ended at the gate of step {missed.number}: {missed.gate_verdict}"
    return "every step is done"
