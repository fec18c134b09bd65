"""Pipelines: state machines of pipelines and steps, the next action, and gates between steps.

The steps fine-tune, evaluate, quantize, evaluate again and deploy can each be left out. A step works on the newest
model version that an earlier step created, or on the one that the pipeline began with. A gate behind a step checks
its metrics: if they miss it, the pipeline is held until a user overrides the gate, or ends there. A pipeline that
ended without success can be retried; it resumes at the step that did not finish::

    pipeline  RUNNING ──succeed──▶ SUCCEEDED   all steps are done, or a gate skipped the rest
                 │ ──hold──▶ HELD              a gate was missed; a user decides
                 │ ──fail──▶ FAILED            a step failed
                 │ ──cancel▶ CANCELLED
                 ◀──go_on── any of the four

    step      WAITING ─begin▶ RUNNING ─succeed▶ SUCCEEDED
                 ▲  │            │ ──miss──▶ HELD ──wave──▶ SUCCEEDED
                 │  └────fail────┴─────────▶ FAILED ──retry──▶ WAITING
                 │               └─cancel──▶ CANCELLED ──retry──▶ WAITING
                 └──resume── SKIPPED ◀──skip── WAITING
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Self

from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.reasons import Parameter, Reason
from controlplane.domain.common.state_machine import StateMachine
from controlplane.domain.registry.versions import GateDecision
from controlplane.domain.specs.evaluation import METRICS

MAX_STEPS = 12
#: A deployment that is degraded for this long fails its step; the deployment itself keeps recovering.
DEGRADED_TIMEOUT = timedelta(minutes=5)


class StepKind(StrEnum):
    FINETUNE = "finetune"
    EVALUATE = "evaluate"
    QUANTIZE = "quantize"
    DEPLOY = "deploy"


#: Kinds that create a model version, which later steps use.
MODEL_PRODUCING_KINDS = frozenset({StepKind.FINETUNE, StepKind.QUANTIZE})


class PipelineState(StrEnum):
    RUNNING = "running"
    HELD = "held"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PipelineEvent(StrEnum):
    SUCCEED = "succeed"
    HOLD = "hold"
    FAIL = "fail"
    CANCEL = "cancel"
    #: A user retries a step or overrides a gate.
    GO_ON = "go_on"


PIPELINE = StateMachine(
    name="pipeline",
    initial=PipelineState.RUNNING,
    transitions={
        (PipelineState.RUNNING, PipelineEvent.SUCCEED): PipelineState.SUCCEEDED,
        (PipelineState.RUNNING, PipelineEvent.HOLD): PipelineState.HELD,
        (PipelineState.RUNNING, PipelineEvent.FAIL): PipelineState.FAILED,
        (PipelineState.RUNNING, PipelineEvent.CANCEL): PipelineState.CANCELLED,
        (PipelineState.HELD, PipelineEvent.GO_ON): PipelineState.RUNNING,
        (PipelineState.HELD, PipelineEvent.CANCEL): PipelineState.CANCELLED,
        (PipelineState.FAILED, PipelineEvent.GO_ON): PipelineState.RUNNING,
        (PipelineState.CANCELLED, PipelineEvent.GO_ON): PipelineState.RUNNING,
        # The rest was skipped by a gate.
        (PipelineState.SUCCEEDED, PipelineEvent.GO_ON): PipelineState.RUNNING,
    },
)


class StepState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    HELD = "held"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class StepEvent(StrEnum):
    BEGIN = "begin"
    SUCCEED = "succeed"
    #: It succeeded, but its metrics miss the gate.
    MISS = "miss"
    OVERRIDE = "wave"
    FAIL = "fail"
    CANCEL = "cancel"
    RETRY = "retry"
    SKIP = "skip"
    RESUME = "resume"


STEP = StateMachine(
    name="step",
    initial=StepState.WAITING,
    transitions={
        (StepState.WAITING, StepEvent.BEGIN): StepState.RUNNING,
        (StepState.WAITING, StepEvent.FAIL): StepState.FAILED,
        (StepState.WAITING, StepEvent.SKIP): StepState.SKIPPED,
        (StepState.RUNNING, StepEvent.SUCCEED): StepState.SUCCEEDED,
        (StepState.RUNNING, StepEvent.MISS): StepState.HELD,
        (StepState.RUNNING, StepEvent.FAIL): StepState.FAILED,
        (StepState.RUNNING, StepEvent.CANCEL): StepState.CANCELLED,
        (StepState.HELD, StepEvent.OVERRIDE): StepState.SUCCEEDED,
        (StepState.FAILED, StepEvent.RETRY): StepState.WAITING,
        (StepState.CANCELLED, StepEvent.RETRY): StepState.WAITING,
        (StepState.SKIPPED, StepEvent.RESUME): StepState.WAITING,
    },
)

#: The next step may begin after a step in one of these states.
DONE_STATES = frozenset({StepState.SUCCEEDED, StepState.SKIPPED})
#: A step in one of these states can be retried.
RETRIABLE_STATES = frozenset({StepState.FAILED, StepState.CANCELLED})


class PipelineAction(StrEnum):
    """What the controller does next for a pipeline."""

    BEGIN = "begin"
    FOLLOW = "follow"
    #: Stop the running step because the pipeline is being cancelled.
    STOP = "stop"
    SUCCEED = "succeed"
    HOLD = "hold"
    FAIL = "fail"
    CANCEL = "cancel"


#: Actions that take a pipeline out of RUNNING, and the event of each.
FINAL_EVENTS: Mapping[PipelineAction, PipelineEvent] = {
    PipelineAction.SUCCEED: PipelineEvent.SUCCEED,
    PipelineAction.HOLD: PipelineEvent.HOLD,
    PipelineAction.FAIL: PipelineEvent.FAIL,
    PipelineAction.CANCEL: PipelineEvent.CANCEL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAction:
    action: PipelineAction
    #: Index of the step, from 0; None if the action concerns the whole pipeline.
    step_index: int | None = None


def next_pipeline_action(states: Sequence[StepState], *, cancelling: bool = False) -> NextAction:
    """The next action for a running pipeline, given the states of its steps in order."""
    for place, state in enumerate(states):
        if state in DONE_STATES:
            continue
        if state is StepState.RUNNING:
            return NextAction(
                action=PipelineAction.STOP if cancelling else PipelineAction.FOLLOW,
                step_index=place,
            )
        if cancelling:
            return NextAction(action=PipelineAction.CANCEL, step_index=place)
        if state is StepState.WAITING:
            return NextAction(action=PipelineAction.BEGIN, step_index=place)
        return NextAction(
            action=PipelineAction.HOLD if state is StepState.HELD else PipelineAction.FAIL,
            step_index=place,
        )
    return NextAction(action=PipelineAction.SUCCEED)


def step_order_error(kinds: Sequence[StepKind]) -> str:
    """Why the steps cannot follow each other in this order; empty if they can."""
    if not kinds:
        return Reason("pipeline.steps.missing", "choose at least one step")
    if len(kinds) > MAX_STEPS:
        return Reason(
            "pipeline.steps.too_many",
            "a pipeline has at most {limit} steps, got {count}",
            limit=MAX_STEPS,
            count=len(kinds),
        )
    if StepKind.DEPLOY in kinds[:-1]:
        return Reason(
            "pipeline.steps.deploy_not_last",
            "deploy must be the last step, but it is step {step}",
            step=kinds.index(StepKind.DEPLOY) + 1,
        )
    quantized = False
    for number, kind in enumerate(kinds, start=1):
        if quantized and kind in MODEL_PRODUCING_KINDS:
            return Reason(
                "pipeline.steps.after_quantize",
                "step {step} cannot {kind} a quantized version; place it before the quantize step",
                step=number,
                kind=kind,
            )
        quantized = quantized or kind is StepKind.QUANTIZE
    return ""


def permissions_for_steps(kinds: Sequence[StepKind]) -> tuple[Permission, ...]:
    """Permissions that a user needs in the team to run such steps."""
    needed = []
    if any(kind is not StepKind.DEPLOY for kind in kinds):
        needed.append(Permission.RUN)
    if StepKind.DEPLOY in kinds:
        needed.append(Permission.DEPLOY)
    return tuple(needed)


#: The metric of a gate on the acceptance of a quantized version.
ACCEPTED = "accepted"


#: Metrics of which lower values are better; for all others higher values are.
_LOWER_IS_BETTER = frozenset({"perplexity"})


#: Metrics that a gate can check, by step kind.
GATE_METRICS: Mapping[StepKind, tuple[str, ...]] = {
    StepKind.EVALUATE: METRICS,
    StepKind.QUANTIZE: (ACCEPTED,),
}


class GateFailureAction(StrEnum):
    """What happens if a gate is missed."""

    #: Hold the pipeline until a user decides.
    STOP = "stop"
    #: End the pipeline as succeeded and skip the remaining steps.
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A condition on a metric of a step."""

    #: One of ``GATED`` for the step's kind.
    metric: str
    #: Minimum of the metric, or maximum if lower is better; None for ``accepted``.
    threshold: float | None = None
    otherwise: GateFailureAction = GateFailureAction.STOP

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Gate:
        return cls(
            metric=stored["metric"],
            threshold=stored["threshold"],
            otherwise=GateFailureAction(stored["otherwise"]),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "threshold": self.threshold,
            "otherwise": self.otherwise.value,
        }

    @property
    def operator(self) -> str:
        """``≥`` or ``≤``."""
        return "≤" if self.metric in _LOWER_IS_BETTER else "≥"

    @property
    def expression(self) -> str:
        """``exact_match ≥ 0.8``."""
        if self.threshold is None:
            return self.metric
        return f"{self.metric} {self.operator} {self.threshold:g}"


def gate_error(kind: StepKind, gate: Gate, *, measured_metrics: Sequence[str] | None = None) -> str:
    """Why a step of that kind cannot have this gate; empty if it can.

    ``measured_metrics`` are the metrics that an evaluation will measure, if they are known.
    """
    known = GATE_METRICS.get(kind, ())
    if not known:
        return Reason(
            "pipeline.gate.not_supported", "a {kind} step has no metrics for a gate", kind=kind
        )
    if gate.metric not in known:
        return Reason(
            "pipeline.gate.metric_not_supported",
            "the metric of a gate after {kind} must be {metrics}, got {metric}",
            kind=kind,
            metrics=" or ".join(known),
            metric=repr(gate.metric),
        )
    if gate.metric == ACCEPTED:
        return (
            ""
            if gate.threshold is None
            else Reason(
                "pipeline.gate.threshold_not_allowed", "accepted has no threshold; remove it"
            )
        )
    if refusal := _threshold_error(gate):
        return refusal
    if measured_metrics is not None and gate.metric not in measured_metrics:
        return Reason(
            "pipeline.gate.metric_not_measured",
            "the step does not measure {metric}; it measures {metrics}",
            metric=gate.metric,
            metrics=", ".join(measured_metrics),
        )
    return ""


def _threshold_error(gate: Gate) -> str:
    threshold = gate.threshold
    if threshold is None or not math.isfinite(threshold):
        return Reason(
            "pipeline.gate.threshold_missing",
            "the gate requires a threshold for {metric}, got {threshold}",
            metric=gate.metric,
            threshold=repr(threshold),
        )
    if gate.metric in _LOWER_IS_BETTER:
        return (
            ""
            if threshold >= 1
            else Reason(
                "pipeline.gate.threshold_too_small",
                "the threshold for {metric} must be at least 1, got {threshold}",
                metric=gate.metric,
                threshold=f"{threshold:g}",
            )
        )
    if not 0 <= threshold <= 1:
        return Reason(
            "pipeline.gate.threshold_out_of_range",
            "the threshold for {metric} must be from 0 to 1, got {threshold}",
            metric=gate.metric,
            threshold=f"{threshold:g}",
        )
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVerdict:
    passed: bool
    #: Message that names the metric, its value and the threshold.
    reason: str

    @classmethod
    def of(cls, code: str, template: str, /, *, passed: bool, **params: Parameter) -> Self:
        """With the ``Reason`` of that code and template."""
        return cls(passed=passed, reason=Reason(code, template, **params))


def evaluate_gate(
    gate: Gate,
    *,
    metrics: Mapping[str, Any],
    acceptance: GateDecision = GateDecision.ACCEPTED,
    acceptance_reason: str = "",
) -> GateVerdict:
    """Whether the metrics pass the gate. A metric that is missing or not a finite number misses it."""
    if gate.metric == ACCEPTED:
        return _evaluate_acceptance(acceptance, acceptance_reason)
    name, operator, value = gate.metric, gate.operator, metrics.get(gate.metric)
    threshold = gate.threshold if gate.threshold is not None else math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return GateVerdict.of(
            "pipeline.gate.no_measurement",
            "no {metric} was measured; the gate requires {operator} {threshold}",
            metric=name,
            operator=operator,
            threshold=f"{threshold:g}",
            passed=False,
        )
    lower_is_better = name in _LOWER_IS_BETTER
    if value <= threshold if lower_is_better else value >= threshold:
        return GateVerdict.of(
            "pipeline.gate.passed",
            "{metric} is {value}; the gate requires {operator} {threshold}",
            metric=name,
            value=f"{value:.6g}",
            operator=operator,
            threshold=f"{threshold:g}",
            passed=True,
        )
    if lower_is_better:
        return GateVerdict.of(
            "pipeline.gate.value_too_high",
            "{metric} is {value}, which is too high; the gate requires {operator} {threshold}",
            metric=name,
            value=f"{value:.6g}",
            operator=operator,
            threshold=f"{threshold:g}",
            passed=False,
        )
    return GateVerdict.of(
        "pipeline.gate.value_too_low",
        "{metric} is {value}, which is too low; the gate requires {operator} {threshold}",
        metric=name,
        value=f"{value:.6g}",
        operator=operator,
        threshold=f"{threshold:g}",
        passed=False,
    )


def _evaluate_acceptance(acceptance: GateDecision, reason: str) -> GateVerdict:
    if acceptance is GateDecision.REJECTED:
        return GateVerdict.of(
            "pipeline.gate.quantization_rejected",
            "the quantized version was rejected: {reason}",
            reason=reason,
            passed=False,
        )
    if reason:
        return GateVerdict.of(
            "pipeline.gate.quantization_accepted_because",
            "the quantized version was accepted: {reason}",
            reason=reason,
            passed=True,
        )
    return GateVerdict.of(
        "pipeline.gate.quantization_accepted", "the quantized version was accepted", passed=True
    )
