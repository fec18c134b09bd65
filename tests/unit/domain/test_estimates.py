"""Estimates against cases worked out by hand, and what must hold for every case."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from controlplane.domain.estimates import MeasuredRun, Training, duration, steps

MILLION = 1_000_000
TRAINING = Training(rows=100, epochs=3, batch_size=8)
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


def test_without_a_measured_run_the_time_is_not_known() -> None:
    assert duration(TRAINING, parameters=MILLION, row_characters=50, runs=[]) is None
    useless = replace(RUN, seconds=0.0)
    assert duration(TRAINING, parameters=MILLION, row_characters=50, runs=[useless]) is None


def test_one_run_gives_a_range_of_a_quarter() -> None:
    # 39 steps of 8 rows are 312; at ten rows a second 31.2 s, and 20 s beside.
    told = duration(TRAINING, parameters=MILLION, row_characters=50, runs=[RUN])
    assert told is not None
    assert told.likely == pytest.approx(51.2)
    assert [told.low, told.high] == pytest.approx([38.4, 64.0])
    assert told.runs == 1


def test_several_runs_give_their_own_range() -> None:
    runs = [replace(RUN, seconds=seconds) for seconds in (300.0, 100.0, 200.0)]
    told = duration(TRAINING, parameters=MILLION, row_characters=50, runs=runs)
    assert told is not None
    assert [told.low, told.likely, told.high] == pytest.approx([51.2, 82.4, 113.6])
    assert told.runs == 3


def test_longer_rows_and_larger_models_take_longer_in_proportion() -> None:
    twice = duration(TRAINING, parameters=MILLION, row_characters=100, runs=[RUN])
    larger = duration(TRAINING, parameters=2 * MILLION, row_characters=50, runs=[RUN])
    assert twice is not None
    assert larger is not None
    assert twice.likely == larger.likely == pytest.approx(82.4)


trainings = some.builds(
    Training,
    rows=some.integers(0, 100_000),
    epochs=some.floats(0.1, 10),
    batch_size=some.integers(1, 64),
    gradient_accumulation=some.integers(1, 16),
)


@given(trainings, some.integers(1, 1000))
def test_more_rows_never_need_fewer_steps_and_larger_batches_never_more(
    training: Training, more: int
) -> None:
    told = steps(training)
    assert steps(replace(training, rows=training.rows + more)) >= told
    assert steps(replace(training, batch_size=training.batch_size + more)) <= told
