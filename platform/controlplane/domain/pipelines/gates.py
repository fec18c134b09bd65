"""Gates of pipelines: conditions on the metrics that a step measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from controlplane.domain.common.reasons import Reason
from controlplane.domain.pipelines.lifecycle import StepKind
from controlplane.domain.registry.versions import GateDecision
from controlplane.domain.specs.evaluation import METRICS

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
        return GateVerdict(
            passed=False,
            reason=Reason(
                "pipeline.gate.no_measurement",
                "no {metric} was measured; the gate requires {operator} {threshold}",
                metric=name,
                operator=operator,
                threshold=f"{threshold:g}",
            ),
        )
    lower_is_better = name in _LOWER_IS_BETTER
    if value <= threshold if lower_is_better else value >= threshold:
        return GateVerdict(
            passed=True,
            reason=Reason(
                "pipeline.gate.passed",
                "{metric} is {value}; the gate requires {operator} {threshold}",
                metric=name,
                value=f"{value:.6g}",
                operator=operator,
                threshold=f"{threshold:g}",
            ),
        )
    if lower_is_better:
        return GateVerdict(
            passed=False,
            reason=Reason(
                "pipeline.gate.value_too_high",
                "{metric} is {value}, which is too high; the gate requires {operator} {threshold}",
                metric=name,
                value=f"{value:.6g}",
                operator=operator,
                threshold=f"{threshold:g}",
            ),
        )
    return GateVerdict(
        passed=False,
        reason=Reason(
            "pipeline.gate.value_too_low",
            "{metric} is {value}, which is too low; the gate requires {operator} {threshold}",
            metric=name,
            value=f"{value:.6g}",
            operator=operator,
            threshold=f"{threshold:g}",
        ),
    )


def _evaluate_acceptance(acceptance: GateDecision, reason: str) -> GateVerdict:
    if acceptance is GateDecision.REJECTED:
        return GateVerdict(
            passed=False,
            reason=Reason(
                "pipeline.gate.quantization_rejected",
                "the quantized version was rejected: {reason}",
                reason=reason,
            ),
        )
    if reason:
        return GateVerdict(
            passed=True,
            reason=Reason(
                "pipeline.gate.quantization_accepted_because",
                "the quantized version was accepted: {reason}",
                reason=reason,
            ),
        )
    return GateVerdict(
        passed=True,
        reason=Reason("pipeline.gate.quantization_accepted", "the quantized version was accepted"),
    )
