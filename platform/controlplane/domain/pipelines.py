"""Pipelines: several steps as one piece of work, each on what the ones before it made.

Fine-tune, evaluate, quantize, evaluate again, deploy: any of them can be left out. A step works on the newest
model version that an earlier step made, or on the one that the pipeline began with. A gate behind a step looks
at its figures: where they miss it, the pipeline is held until a person waves it through, or ends there. Nothing
is lost by an end that is not good: whoever takes it up again goes on from the step that it stands at::

    pipeline  RUNNING ──succeed──▶ SUCCEEDED   all steps are done, or the rest was skipped by a gate
                 │ ──hold──▶ HELD              a gate was missed; a person decides
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
from typing import Any

from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.state_machine import StateMachine
from controlplane.domain.models import Acceptance
from controlplane.domain.specs.evaluation import METRICS

MOST_STEPS = 12
#: A deployment that has been in trouble for this long has failed its step; it goes on trying by itself.
TROUBLED_FOR = timedelta(minutes=5)


class StepKind(StrEnum):
    FINETUNE = "finetune"
    EVALUATE = "evaluate"
    QUANTIZE = "quantize"
    DEPLOY = "deploy"


#: Kinds that make a model version, on which the steps behind them work.
MAKING = frozenset({StepKind.FINETUNE, StepKind.QUANTIZE})


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
    #: Somebody tries a step again or waves it through.
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
        # Of one whose rest a gate had skipped.
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
    #: It went well, and what it measured misses its gate.
    MISS = "miss"
    WAVE = "wave"
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
        (StepState.HELD, StepEvent.WAVE): StepState.SUCCEEDED,
        (StepState.FAILED, StepEvent.RETRY): StepState.WAITING,
        (StepState.CANCELLED, StepEvent.RETRY): StepState.WAITING,
        (StepState.SKIPPED, StepEvent.RESUME): StepState.WAITING,
    },
)

#: Behind these the next step may begin.
PASSED = frozenset({StepState.SUCCEEDED, StepState.SKIPPED})
#: From these a step is tried again.
RETRIABLE = frozenset({StepState.FAILED, StepState.CANCELLED})


class Act(StrEnum):
    """What a turn of the loop has to do."""

    BEGIN = "begin"
    FOLLOW = "follow"
    #: End the step that runs, for somebody wants the pipeline to end.
    STOP = "stop"
    SUCCEED = "succeed"
    HOLD = "hold"
    FAIL = "fail"
    CANCEL = "cancel"


#: The acts that end a turn of a running pipeline, and the move that each makes.
RESTS: Mapping[Act, PipelineEvent] = {
    Act.SUCCEED: PipelineEvent.SUCCEED,
    Act.HOLD: PipelineEvent.HOLD,
    Act.FAIL: PipelineEvent.FAIL,
    Act.CANCEL: PipelineEvent.CANCEL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    act: Act
    #: Place of the step that it is about, from 0; None where it is about all of them.
    at: int | None = None


def turn_of(states: Sequence[StepState], *, cancelling: bool = False) -> Turn:
    """What is to be done next with a running pipeline whose steps are in those states, in their order."""
    for place, state in enumerate(states):
        if state in PASSED:
            continue
        if state is StepState.RUNNING:
            return Turn(act=Act.STOP if cancelling else Act.FOLLOW, at=place)
        if cancelling:
            return Turn(act=Act.CANCEL, at=place)
        if state is StepState.WAITING:
            return Turn(act=Act.BEGIN, at=place)
        return Turn(act=Act.HOLD if state is StepState.HELD else Act.FAIL, at=place)
    return Turn(act=Act.SUCCEED)


def order_refusal(kinds: Sequence[StepKind]) -> str:
    """Why the steps cannot follow each other like that; empty where they can."""
    if not kinds:
        return "choose at least one step"
    if len(kinds) > MOST_STEPS:
        return f"a pipeline has at most {MOST_STEPS} steps, got {len(kinds)}"
    if StepKind.DEPLOY in kinds[:-1]:
        return f"deploy must be the last step, got it as step {kinds.index(StepKind.DEPLOY) + 1}"
    quantized = False
    for number, kind in enumerate(kinds, start=1):
        if quantized and kind in MAKING:
            return f"step {number} cannot {kind} what has been quantized; put it before the quantize step"
        quantized = quantized or kind is StepKind.QUANTIZE
    return ""


def permissions_of(kinds: Sequence[StepKind]) -> tuple[Permission, ...]:
    """What somebody needs in the team to run such steps."""
    needed = []
    if any(kind is not StepKind.DEPLOY for kind in kinds):
        needed.append(Permission.RUN)
    if StepKind.DEPLOY in kinds:
        needed.append(Permission.DEPLOY)
    return tuple(needed)


#: The figure of a gate that asks whether the quantized version was accepted by its tolerance.
ACCEPTED = "accepted"
#: Figures of which less is better; of all others more is.
_LESS_IS_BETTER = frozenset({"perplexity"})
#: Which figures a gate behind a step of that kind can look at.
GATED: Mapping[StepKind, tuple[str, ...]] = {
    StepKind.EVALUATE: METRICS,
    StepKind.QUANTIZE: (ACCEPTED,),
}


class Otherwise(StrEnum):
    """What a missed gate does."""

    #: Hold the pipeline until a person decides.
    STOP = "stop"
    #: End it well, without the steps behind the gate.
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A condition behind a step."""

    #: One of ``GATED`` for the step's kind.
    figure: str
    #: The figure has to reach it, or to stay within it where less is better; None for ``accepted``.
    threshold: float | None = None
    otherwise: Otherwise = Otherwise.STOP

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Gate:
        return cls(
            figure=stored["figure"],
            threshold=stored["threshold"],
            otherwise=Otherwise(stored["otherwise"]),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "figure": self.figure,
            "threshold": self.threshold,
            "otherwise": self.otherwise.value,
        }

    @property
    def sign(self) -> str:
        """``≥`` or ``≤``."""
        return "≤" if self.figure in _LESS_IS_BETTER else "≥"

    @property
    def in_symbols(self) -> str:
        """``exact_match ≥ 0.8``."""
        if self.threshold is None:
            return self.figure
        return f"{self.figure} {self.sign} {self.threshold:g}"


def gate_refusal(kind: StepKind, gate: Gate, *, measured: Sequence[str] | None = None) -> str:
    """What is wrong with a gate behind a step of that kind; empty where nothing is.

    ``measured`` are the figures that an evaluation will measure, where that is known.
    """
    known = GATED.get(kind, ())
    if not known:
        return f"a step that is to {kind} measures nothing that a gate could look at"
    if gate.figure not in known:
        return f"a gate behind {kind} looks at {' or '.join(known)}, got {gate.figure!r}"
    if gate.figure == ACCEPTED:
        return "" if gate.threshold is None else "accepted takes no threshold; leave it out"
    if refusal := _threshold_refusal(gate):
        return refusal
    if measured is not None and gate.figure not in measured:
        return f"the step does not measure {gate.figure}; it measures {', '.join(measured)}"
    return ""


def _threshold_refusal(gate: Gate) -> str:
    threshold = gate.threshold
    if threshold is None or not math.isfinite(threshold):
        return f"give the {gate.figure} that is wanted, got {threshold!r}"
    if gate.figure in _LESS_IS_BETTER:
        return "" if threshold >= 1 else f"{gate.figure} is never below 1, got {threshold:g}"
    if not 0 <= threshold <= 1:
        return f"{gate.figure} is a share from 0 to 1, got {threshold:g}"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    passed: bool
    #: The figure and the threshold in words.
    reason: str


def judge(
    gate: Gate,
    *,
    figures: Mapping[str, Any],
    acceptance: Acceptance = Acceptance.ACCEPTED,
    acceptance_reason: str = "",
) -> Verdict:
    """Whether the figures pass the gate. A figure that is missing or no number misses it."""
    if gate.figure == ACCEPTED:
        return _judge_acceptance(acceptance, acceptance_reason)
    name, sign, value = gate.figure, gate.sign, figures.get(gate.figure)
    threshold = gate.threshold if gate.threshold is not None else math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return Verdict(
            passed=False,
            reason=f"no {name} was measured; the gate asks for {sign} {threshold:g}",
        )
    less = name in _LESS_IS_BETTER
    if value <= threshold if less else value >= threshold:
        return Verdict(
            passed=True, reason=f"{name} is {value:.6g}; the gate asks for {sign} {threshold:g}"
        )
    if less:
        return Verdict(
            passed=False,
            reason=f"{name} is as much as {value:.6g}; the gate asks for {sign} {threshold:g}",
        )
    return Verdict(
        passed=False, reason=f"{name} is only {value:.6g}; the gate asks for {sign} {threshold:g}"
    )


def _judge_acceptance(acceptance: Acceptance, because: str) -> Verdict:
    if acceptance is Acceptance.REJECTED:
        return Verdict(passed=False, reason=f"the quantized version was rejected: {because}")
    if because:
        return Verdict(passed=True, reason=f"the quantized version was accepted: {because}")
    return Verdict(passed=True, reason="the quantized version was accepted")
