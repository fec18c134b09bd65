"""Pipelines: which steps may follow each other, what is next, and what a gate says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.common.permissions import Permission
from controlplane.domain.pipelines.lifecycle import (
    ACCEPTED,
    FINAL_EVENTS,
    GATE_METRICS,
    MAX_STEPS,
    MODEL_PRODUCING_KINDS,
    PIPELINE,
    RETRIABLE_STATES,
    STEP,
    Gate,
    GateFailureAction,
    PipelineAction,
    PipelineEvent,
    PipelineState,
    StepEvent,
    StepKind,
    StepState,
    evaluate_gate,
    gate_error,
    next_pipeline_action,
    permissions_for_steps,
    step_order_error,
)
from controlplane.domain.registry.versions import GateDecision

F, E, Q, D = StepKind.FINETUNE, StepKind.EVALUATE, StepKind.QUANTIZE, StepKind.DEPLOY
orders = st.lists(st.sampled_from(list(StepKind)), max_size=MAX_STEPS + 2)
#: What happens to a step that runs.
outcomes = st.sampled_from(["succeed", "miss", "skip", "fail"])


@pytest.mark.parametrize(
    "kinds",
    [(F, E, Q, E, D), (F,), (E,), (Q, D), (D,), (F, F, E), (E, F, E, Q, E), (E, E, D)],
    ids=" ".join,
)
def test_any_of_the_five_default_steps_can_be_left_out(kinds: Sequence[StepKind]) -> None:
    assert step_order_error(kinds) == ""


@pytest.mark.parametrize(
    ("kinds", "reason"),
    [
        ((), "choose at least one step"),
        ((D, E), "deploy must be the last step, but it is step 1"),
        ((F, D, D), "deploy must be the last step, but it is step 2"),
        ((Q, E, F), "step 3 cannot finetune a quantized version"),
        ((F, Q, Q, D), "step 3 cannot quantize a quantized version"),
        ((E,) * 13, "at most 12 steps, got 13"),
    ],
    ids=str,
)
def test_steps_that_cannot_follow_each_other_are_refused_with_the_place(
    kinds: Sequence[StepKind], reason: str
) -> None:
    assert reason in step_order_error(kinds)


@given(orders)
def test_a_step_order_is_valid_if_deploy_is_last_and_quantize_follows_training(
    kinds: list[StepKind],
) -> None:
    right = (
        0 < len(kinds) <= MAX_STEPS
        and D not in kinds[:-1]
        and not any(
            earlier is Q and later in MODEL_PRODUCING_KINDS
            for place, earlier in enumerate(kinds)
            for later in kinds[place + 1 :]
        )
    )
    assert (step_order_error(kinds) == "") is right


@pytest.mark.parametrize(
    ("kinds", "needed"),
    [
        ((F, E), (Permission.RUN,)),
        ((D,), (Permission.DEPLOY,)),
        ((F, D), (Permission.RUN, Permission.DEPLOY)),
        ((), ()),
    ],
)
def test_required_permissions_follow_from_step_kinds(
    kinds: Sequence[StepKind], needed: tuple[Permission, ...]
) -> None:
    assert permissions_for_steps(kinds) == needed


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("cancelling", [False, True])
def test_the_first_unfinished_step_determines_the_next_action(
    length: int, cancelling: bool
) -> None:
    """The full product of states, for pipelines of up to three steps."""
    running = {
        StepState.WAITING: PipelineAction.CANCEL if cancelling else PipelineAction.BEGIN,
        StepState.RUNNING: PipelineAction.STOP if cancelling else PipelineAction.FOLLOW,
        StepState.HELD: PipelineAction.CANCEL if cancelling else PipelineAction.HOLD,
        StepState.FAILED: PipelineAction.CANCEL if cancelling else PipelineAction.FAIL,
        StepState.CANCELLED: PipelineAction.CANCEL if cancelling else PipelineAction.FAIL,
    }
    for states in product(StepState, repeat=length):
        turn = next_pipeline_action(states, cancelling=cancelling)
        standing = [place for place, state in enumerate(states) if state in running]
        if not standing:
            assert (turn.action, turn.step_index) == (PipelineAction.SUCCEED, None)
        else:
            assert (turn.action, turn.step_index) == (running[states[standing[0]]], standing[0])


def test_exactly_the_final_actions_move_a_running_pipeline() -> None:
    assert set(FINAL_EVENTS) == set(PipelineAction) - {
        PipelineAction.BEGIN,
        PipelineAction.FOLLOW,
        PipelineAction.STOP,
    }
    for event in FINAL_EVENTS.values():
        assert PIPELINE.allows(PipelineState.RUNNING, event)
    assert set(FINAL_EVENTS.values()) | {PipelineEvent.GO_ON} == set(PipelineEvent)


class Simulated:
    """A pipeline whose steps end as they are told, moved through the tables only."""

    def __init__(self, count: int, fates: list[str]) -> None:
        self.state = PipelineState.RUNNING
        self.steps = [StepState.WAITING] * count
        self.fates = fates
        self.begun: list[int] = []

    def move(self, place: int, event: StepEvent) -> None:
        self.steps[place] = STEP.after(self.steps[place], event)

    def rest(self) -> None:
        """Take turns until it comes to rest."""
        for _ in range(3 * len(self.steps) + 1):
            turn = next_pipeline_action(self.steps)
            if turn.action in FINAL_EVENTS:
                self.state = PIPELINE.after(self.state, FINAL_EVENTS[turn.action])
                return
            assert turn.step_index is not None
            if turn.action is PipelineAction.BEGIN:
                self.begun.append(turn.step_index)
                self.move(turn.step_index, StepEvent.BEGIN)
            else:
                self.end(turn.step_index)
        raise AssertionError("it never comes to rest")

    def end(self, place: int) -> None:
        fate = self.fates.pop() if self.fates else "succeed"
        if fate == "skip":
            self.move(place, StepEvent.SUCCEED)
            for later in range(place + 1, len(self.steps)):
                self.move(later, StepEvent.SKIP)
        else:
            self.move(place, StepEvent(fate))

    def take_up(self) -> None:
        """What a person does to one that did not end well."""
        self.state = PIPELINE.after(self.state, PipelineEvent.GO_ON)
        for place, state in enumerate(self.steps):
            if state in RETRIABLE_STATES:
                self.move(place, StepEvent.RETRY)
            elif state is StepState.HELD:
                self.move(place, StepEvent.OVERRIDE)


@given(st.integers(1, MAX_STEPS), st.lists(outcomes, max_size=20))
def test_any_pipeline_ends_and_steps_begin_in_order(count: int, fates: list[str]) -> None:
    pipeline = Simulated(count, fates)
    bad = sum(fate in ("miss", "fail") for fate in fates)
    pipeline.rest()
    for _ in range(bad):
        if pipeline.state is PipelineState.SUCCEEDED:
            break
        wanted = {PipelineState.HELD: StepState.HELD, PipelineState.FAILED: StepState.FAILED}
        assert wanted[pipeline.state] in pipeline.steps
        pipeline.take_up()
        pipeline.rest()
    assert pipeline.state is PipelineState.SUCCEEDED
    assert set(pipeline.steps) <= {StepState.SUCCEEDED, StepState.SKIPPED}
    # In their order, a step again only where it has failed, and none behind a gate that skips.
    assert pipeline.begun == sorted(pipeline.begun)
    assert set(pipeline.begun) == {
        place for place, state in enumerate(pipeline.steps) if state is StepState.SUCCEEDED
    }


@pytest.mark.parametrize(
    ("metric", "threshold", "value", "passed", "message"),
    [
        ("exact_match", 0.8, 0.8, True, "exact_match is 0.8; the gate requires ≥ 0.8"),
        (
            "exact_match",
            0.8,
            0.79996,
            False,
            "exact_match is 0.79996, which is too low; the gate requires ≥ 0.8",
        ),
        ("label_accuracy", 0.5, 1, True, "label_accuracy is 1; the gate requires ≥ 0.5"),
        ("perplexity", 10, 10.0, True, "perplexity is 10; the gate requires ≤ 10"),
        (
            "perplexity",
            10,
            12.5,
            False,
            "perplexity is 12.5, which is too high; the gate requires ≤ 10",
        ),
        ("perplexity", 10, math.nan, False, "no perplexity was measured; the gate requires ≤ 10"),
        ("exact_match", 0.8, None, False, "no exact_match was measured; the gate requires ≥ 0.8"),
        ("exact_match", 0.8, "0.9", False, "no exact_match was measured; the gate requires ≥ 0.8"),
        ("exact_match", 0.8, True, False, "no exact_match was measured; the gate requires ≥ 0.8"),
    ],
)
def test_a_gate_verdict_names_the_metric_and_the_threshold(
    metric: str, threshold: float, value: Any, passed: bool, message: str
) -> None:
    metrics = {} if value is None else {metric: value}
    verdict = evaluate_gate(Gate(metric=metric, threshold=threshold), metrics=metrics)
    assert (verdict.passed, verdict.reason) == (passed, message)


@given(st.floats(0, 1), st.floats(0, 1))
def test_gate_evaluation_is_monotonic_in_the_metric(one: float, other: float) -> None:
    better, worse = max(one, other), min(one, other)
    for threshold in (0.0, 0.25, one, other, 1.0):
        share = Gate(metric="exact_match", threshold=threshold)
        if evaluate_gate(share, metrics={"exact_match": worse}).passed:
            assert evaluate_gate(share, metrics={"exact_match": better}).passed
        surprise = Gate(metric="perplexity", threshold=1 + threshold)
        if evaluate_gate(surprise, metrics={"perplexity": 1 + better}).passed:
            assert evaluate_gate(surprise, metrics={"perplexity": 1 + worse}).passed


@pytest.mark.parametrize("acceptance", GateDecision)
def test_a_quantized_version_passes_its_gate_unless_it_was_rejected(
    acceptance: GateDecision,
) -> None:
    verdict = evaluate_gate(
        Gate(metric=ACCEPTED),
        metrics={},
        acceptance=acceptance,
        acceptance_reason="perplexity rose by 31 %",
    )
    assert verdict.passed is (acceptance is not GateDecision.REJECTED)
    assert "perplexity rose by 31 %" in verdict.reason


@pytest.mark.parametrize(
    ("kind", "gate", "reason"),
    [
        (F, Gate(metric="exact_match", threshold=1), "a finetune step has no metrics for a gate"),
        (D, Gate(metric="exact_match", threshold=1), "a deploy step has no metrics for a gate"),
        (E, Gate(metric="bleu", threshold=1), "got 'bleu'"),
        (E, Gate(metric=ACCEPTED), "got 'accepted'"),
        (E, Gate(metric="exact_match"), "the gate requires a threshold for exact_match, got None"),
        (E, Gate(metric="exact_match", threshold=math.inf), "got inf"),
        (E, Gate(metric="exact_match", threshold=80), "must be from 0 to 1, got 80"),
        (E, Gate(metric="perplexity", threshold=0.5), "must be at least 1, got 0.5"),
        (E, Gate(metric="perplexity", threshold=9), "it measures exact_match"),
        (Q, Gate(metric="perplexity", threshold=9), "must be accepted, got 'perplexity'"),
        (Q, Gate(metric=ACCEPTED, threshold=1), "accepted has no threshold"),
    ],
    ids=str,
)
def test_an_invalid_gate_is_refused_with_valid_values(
    kind: StepKind, gate: Gate, reason: str
) -> None:
    assert reason in gate_error(kind, gate, measured_metrics=["exact_match"])


@given(
    kind=st.sampled_from(sorted(GATE_METRICS)),
    threshold=st.floats(1, 100) | st.floats(0, 1) | st.none(),
    otherwise=st.sampled_from(GateFailureAction),
    data=st.data(),
)
def test_a_valid_gate_survives_serialisation(
    kind: StepKind, threshold: float | None, otherwise: GateFailureAction, data: st.DataObject
) -> None:
    metric = data.draw(st.sampled_from(GATE_METRICS[kind]))
    gate = Gate(metric=metric, threshold=threshold, otherwise=otherwise)
    if not gate_error(kind, gate):
        assert Gate.from_json(gate.as_json()) == gate
        assert metric in gate.expression
