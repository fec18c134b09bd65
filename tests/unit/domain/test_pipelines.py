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
from controlplane.domain.models import Acceptance
from controlplane.domain.pipelines import (
    ACCEPTED,
    GATED,
    MAKING,
    MOST_STEPS,
    PIPELINE,
    RESTS,
    RETRIABLE,
    STEP,
    Act,
    Gate,
    Otherwise,
    PipelineEvent,
    PipelineState,
    StepEvent,
    StepKind,
    StepState,
    gate_refusal,
    judge,
    order_refusal,
    permissions_of,
    turn_of,
)

F, E, Q, D = StepKind.FINETUNE, StepKind.EVALUATE, StepKind.QUANTIZE, StepKind.DEPLOY
orders = st.lists(st.sampled_from(list(StepKind)), max_size=MOST_STEPS + 2)
#: What happens to a step that runs.
endings = st.sampled_from(["succeed", "miss", "skip", "fail"])


@pytest.mark.parametrize(
    "kinds",
    [(F, E, Q, E, D), (F,), (E,), (Q, D), (D,), (F, F, E), (E, F, E, Q, E), (E, E, D)],
    ids=" ".join,
)
def test_any_step_of_the_usual_five_can_be_left_out(kinds: Sequence[StepKind]) -> None:
    assert order_refusal(kinds) == ""


@pytest.mark.parametrize(
    ("kinds", "why"),
    [
        ((), "choose at least one step"),
        ((D, E), "deploy must be the last step, got it as step 1"),
        ((F, D, D), "deploy must be the last step, got it as step 2"),
        ((Q, E, F), "step 3 cannot finetune what has been quantized"),
        ((F, Q, Q, D), "step 3 cannot quantize what has been quantized"),
        ((E,) * 13, "at most 12 steps, got 13"),
    ],
    ids=str,
)
def test_steps_that_cannot_follow_each_other_are_refused_with_the_place(
    kinds: Sequence[StepKind], why: str
) -> None:
    assert why in order_refusal(kinds)


@given(orders)
def test_an_order_is_right_exactly_if_it_deploys_last_and_quantizes_what_is_done(
    kinds: list[StepKind],
) -> None:
    right = (
        0 < len(kinds) <= MOST_STEPS
        and D not in kinds[:-1]
        and not any(
            earlier is Q and later in MAKING
            for place, earlier in enumerate(kinds)
            for later in kinds[place + 1 :]
        )
    )
    assert (order_refusal(kinds) == "") is right


@pytest.mark.parametrize(
    ("kinds", "needed"),
    [
        ((F, E), (Permission.RUN,)),
        ((D,), (Permission.DEPLOY,)),
        ((F, D), (Permission.RUN, Permission.DEPLOY)),
        ((), ()),
    ],
)
def test_who_may_run_the_steps_follows_from_their_kinds(
    kinds: Sequence[StepKind], needed: tuple[Permission, ...]
) -> None:
    assert permissions_of(kinds) == needed


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("cancelling", [False, True])
def test_the_first_step_that_has_not_passed_says_what_is_next(
    length: int, cancelling: bool
) -> None:
    """The full product of states, for pipelines of up to three steps."""
    running = {
        StepState.WAITING: Act.CANCEL if cancelling else Act.BEGIN,
        StepState.RUNNING: Act.STOP if cancelling else Act.FOLLOW,
        StepState.HELD: Act.CANCEL if cancelling else Act.HOLD,
        StepState.FAILED: Act.CANCEL if cancelling else Act.FAIL,
        StepState.CANCELLED: Act.CANCEL if cancelling else Act.FAIL,
    }
    for states in product(StepState, repeat=length):
        turn = turn_of(states, cancelling=cancelling)
        standing = [place for place, state in enumerate(states) if state in running]
        if not standing:
            assert (turn.act, turn.at) == (Act.SUCCEED, None)
        else:
            assert (turn.act, turn.at) == (running[states[standing[0]]], standing[0])


def test_every_act_that_is_a_rest_moves_a_running_pipeline_and_no_other_does() -> None:
    assert set(RESTS) == set(Act) - {Act.BEGIN, Act.FOLLOW, Act.STOP}
    for event in RESTS.values():
        assert PIPELINE.allows(PipelineState.RUNNING, event)
    assert set(RESTS.values()) | {PipelineEvent.GO_ON} == set(PipelineEvent)


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
            turn = turn_of(self.steps)
            if turn.act in RESTS:
                self.state = PIPELINE.after(self.state, RESTS[turn.act])
                return
            assert turn.at is not None
            if turn.act is Act.BEGIN:
                self.begun.append(turn.at)
                self.move(turn.at, StepEvent.BEGIN)
            else:
                self.end(turn.at)
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
            if state in RETRIABLE:
                self.move(place, StepEvent.RETRY)
            elif state is StepState.HELD:
                self.move(place, StepEvent.WAVE)


@given(st.integers(1, MOST_STEPS), st.lists(endings, max_size=20))
def test_whatever_happens_to_its_steps_a_pipeline_ends_and_none_begins_out_of_turn(
    count: int, fates: list[str]
) -> None:
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
    ("figure", "threshold", "value", "passed", "words"),
    [
        ("exact_match", 0.8, 0.8, True, "exact_match is 0.8; the gate asks for ≥ 0.8"),
        (
            "exact_match",
            0.8,
            0.79996,
            False,
            "exact_match is only 0.79996; the gate asks for ≥ 0.8",
        ),
        ("label_accuracy", 0.5, 1, True, "label_accuracy is 1; the gate asks for ≥ 0.5"),
        ("perplexity", 10, 10.0, True, "perplexity is 10; the gate asks for ≤ 10"),
        ("perplexity", 10, 12.5, False, "perplexity is as much as 12.5; the gate asks for ≤ 10"),
        ("perplexity", 10, math.nan, False, "no perplexity was measured; the gate asks for ≤ 10"),
        ("exact_match", 0.8, None, False, "no exact_match was measured; the gate asks for ≥ 0.8"),
        ("exact_match", 0.8, "0.9", False, "no exact_match was measured; the gate asks for ≥ 0.8"),
        ("exact_match", 0.8, True, False, "no exact_match was measured; the gate asks for ≥ 0.8"),
    ],
)
def test_a_gate_says_the_figure_and_the_threshold(
    figure: str, threshold: float, value: Any, passed: bool, words: str
) -> None:
    figures = {} if value is None else {figure: value}
    verdict = judge(Gate(figure=figure, threshold=threshold), figures=figures)
    assert (verdict.passed, verdict.reason) == (passed, words)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_better_figure_never_misses_where_a_worse_one_passes(one: float, other: float) -> None:
    better, worse = max(one, other), min(one, other)
    for threshold in (0.0, 0.25, one, other, 1.0):
        share = Gate(figure="exact_match", threshold=threshold)
        if judge(share, figures={"exact_match": worse}).passed:
            assert judge(share, figures={"exact_match": better}).passed
        surprise = Gate(figure="perplexity", threshold=1 + threshold)
        if judge(surprise, figures={"perplexity": 1 + better}).passed:
            assert judge(surprise, figures={"perplexity": 1 + worse}).passed


@pytest.mark.parametrize("acceptance", Acceptance)
def test_a_quantized_version_passes_its_gate_unless_it_was_rejected(
    acceptance: Acceptance,
) -> None:
    verdict = judge(
        Gate(figure=ACCEPTED),
        figures={},
        acceptance=acceptance,
        acceptance_reason="perplexity rose by 31 %",
    )
    assert verdict.passed is (acceptance is not Acceptance.REJECTED)
    assert "perplexity rose by 31 %" in verdict.reason


@pytest.mark.parametrize(
    ("kind", "gate", "why"),
    [
        (F, Gate(figure="exact_match", threshold=1), "finetune measures nothing"),
        (D, Gate(figure="exact_match", threshold=1), "deploy measures nothing"),
        (E, Gate(figure="bleu", threshold=1), "got 'bleu'"),
        (E, Gate(figure=ACCEPTED), "got 'accepted'"),
        (E, Gate(figure="exact_match"), "give the exact_match that is wanted, got None"),
        (E, Gate(figure="exact_match", threshold=math.inf), "got inf"),
        (E, Gate(figure="exact_match", threshold=80), "a share from 0 to 1, got 80"),
        (E, Gate(figure="perplexity", threshold=0.5), "never below 1, got 0.5"),
        (E, Gate(figure="perplexity", threshold=9), "it measures exact_match"),
        (Q, Gate(figure="perplexity", threshold=9), "looks at accepted, got 'perplexity'"),
        (Q, Gate(figure=ACCEPTED, threshold=1), "accepted takes no threshold"),
    ],
    ids=str,
)
def test_a_gate_that_cannot_be_looked_at_is_refused_with_what_would_be_right(
    kind: StepKind, gate: Gate, why: str
) -> None:
    assert why in gate_refusal(kind, gate, measured=["exact_match"])


@given(
    kind=st.sampled_from(sorted(GATED)),
    threshold=st.floats(1, 100) | st.floats(0, 1) | st.none(),
    otherwise=st.sampled_from(Otherwise),
    data=st.data(),
)
def test_a_gate_that_is_right_survives_being_kept(
    kind: StepKind, threshold: float | None, otherwise: Otherwise, data: st.DataObject
) -> None:
    figure = data.draw(st.sampled_from(GATED[kind]))
    gate = Gate(figure=figure, threshold=threshold, otherwise=otherwise)
    if not gate_refusal(kind, gate):
        assert Gate.from_json(gate.as_json()) == gate
        assert figure in gate.in_symbols
