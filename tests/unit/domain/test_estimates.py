"""Estimates against cases worked out by hand, and what must hold for every case."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from controlplane.domain.estimates import (
    PROCESS,
    MeasuredRun,
    Network,
    Training,
    adapter_parameters,
    duration,
    memory,
    steps,
)

#: As the small sample model: 3 layers of 128.
SMALL = Network(parameters=1_000_000, hidden=128, layers=3, intermediate=384, vocabulary=1_000)
SEVEN_BILLION = Network(
    parameters=7_000_000_000, hidden=4096, layers=32, intermediate=11_008, vocabulary=32_000
)
TRAINING = Training(rows=100, epochs=3, batch_size=8, length=64)
RUN = MeasuredRun(
    parameters=1_000_000, rows=1_000, row_characters=50, seconds=100.0, overhead_seconds=20.0
)


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        # 100 rows in batches of 8 are 13 batches; three times.
        (TRAINING, 39),
        # 13 batches by fours are 4 steps.
        (replace(TRAINING, gradient_accumulation=4), 12),
        # Half an epoch of 13 steps is 6.5.
        (replace(TRAINING, epochs=0.5), 7),
        (replace(TRAINING, rows=8, epochs=1), 1),
        (replace(TRAINING, rows=0), 0),
        (replace(TRAINING, max_steps=5), 5),
        # The trainer goes round again until it has them.
        (replace(TRAINING, max_steps=500), 500),
    ],
)
def test_steps_follow_the_trainers_rule(training: Training, expected: int) -> None:
    assert steps(training) == expected


def test_training_every_weight_holds_four_float32_values_for_each() -> None:
    told = memory(SMALL, TRAINING)
    assert told.weights == 4_000_000
    assert told.gradients == 4_000_000
    assert told.optimizer == 8_000_000
    # 8 rows × 64 tokens × (3 layers × 17 values × 128 × 4 bytes + 1,000 logits × 12 bytes).
    assert told.activations == 512 * (26_112 + 12_000)
    assert told.total == 16_000_000 + 19_513_344 + PROCESS


def test_computing_in_sixteen_bits_keeps_a_copy_of_the_weights() -> None:
    told = memory(SEVEN_BILLION, replace(TRAINING, value_bytes=2))
    assert told.weights == 42_000_000_000
    assert told.total > 98_000_000_000


def test_an_adapter_trains_only_itself() -> None:
    # 16 × 32 × (4 × 8,192 + 3 × 15,104): the 40 million that PEFT counts for such a model.
    assert adapter_parameters(SEVEN_BILLION, rank=16) == 39_976_960
    told = memory(SEVEN_BILLION, replace(TRAINING, rank=16, value_bytes=2))
    assert told.weights == 14_000_000_000 + 4 * 39_976_960
    assert told.gradients == 4 * 39_976_960
    assert told.optimizer == 8 * 39_976_960


def test_recomputing_keeps_one_value_for_each_layer_and_one_whole_layer() -> None:
    told = memory(SMALL, replace(TRAINING, recomputes=True))
    assert told.activations == 512 * ((3 + 17) * 512 + 12_000)


def test_without_a_measured_run_the_time_is_not_known() -> None:
    assert duration(SMALL, TRAINING, row_characters=50, runs=[]) is None
    useless = replace(RUN, seconds=0.0)
    assert duration(SMALL, TRAINING, row_characters=50, runs=[useless]) is None


def test_one_run_gives_a_range_of_a_quarter() -> None:
    # 39 steps of 8 rows are 312; at ten rows a second 31.2 s, and 20 s beside.
    told = duration(SMALL, TRAINING, row_characters=50, runs=[RUN])
    assert told is not None
    assert told.likely == pytest.approx(51.2)
    assert [told.low, told.high] == pytest.approx([38.4, 64.0])
    assert told.runs == 1


def test_several_runs_give_their_own_range() -> None:
    runs = [replace(RUN, seconds=seconds) for seconds in (300.0, 100.0, 200.0)]
    told = duration(SMALL, TRAINING, row_characters=50, runs=runs)
    assert told is not None
    assert [told.low, told.likely, told.high] == pytest.approx([51.2, 82.4, 113.6])
    assert told.runs == 3


def test_longer_rows_and_larger_models_take_longer_in_proportion() -> None:
    twice = duration(SMALL, TRAINING, row_characters=100, runs=[RUN])
    larger = duration(replace(SMALL, parameters=2_000_000), TRAINING, row_characters=50, runs=[RUN])
    assert twice is not None
    assert larger is not None
    assert twice.likely == larger.likely == pytest.approx(82.4)


def test_a_guessed_shape_has_about_the_parameters_that_it_was_guessed_from() -> None:
    for parameters in (10_000_000, 500_000_000, 7_000_000_000, 70_000_000_000):
        guess = Network.guessed(parameters)
        assert 0.6 < 12 * guess.layers * guess.hidden**2 / parameters < 1.5


trainings = some.builds(
    Training,
    rows=some.integers(0, 100_000),
    epochs=some.floats(0.1, 10),
    batch_size=some.integers(1, 64),
    gradient_accumulation=some.integers(1, 16),
    length=some.integers(8, 4096),
    rank=some.none() | some.integers(1, 256),
    value_bytes=some.sampled_from([2, 4]),
    recomputes=some.booleans(),
)


@given(trainings, some.integers(1, 64))
def test_larger_batches_longer_rows_and_larger_models_never_need_less_memory(
    training: Training, more: int
) -> None:
    told = memory(SMALL, training).total
    assert memory(SMALL, replace(training, batch_size=training.batch_size + more)).total > told
    assert memory(SMALL, replace(training, length=training.length + more)).total > told
    larger = replace(SMALL, parameters=SMALL.parameters + more)
    assert memory(larger, training).total > told


@given(trainings, some.integers(1, 1000))
def test_more_rows_never_need_fewer_steps_and_larger_batches_never_more(
    training: Training, more: int
) -> None:
    told = steps(training)
    assert steps(replace(training, rows=training.rows + more)) >= told
    assert steps(replace(training, batch_size=training.batch_size + more)) <= told
