"""Estimates against cases worked out by hand, and what must hold for every case."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from controlplane.domain.architectures import parse_architecture
from controlplane.domain.common.accelerators import Dtype
from controlplane.domain.sizing.training_performance import (
    ClusterThroughput,
    MeasuredRun,
    TrainingRunSize,
    model_flops_utilization,
    scaling_efficiency,
    training_duration,
    training_operations,
    training_steps,
)
from tests.unit.domain.sizing.model_configs import (
    CARD,
    DEEPSEEK_V3,
    GEMMA3_27B,
    LLAMA3_8B,
    QWEN3_NEXT,
)

MILLION = 1_000_000
TRAINING = TrainingRunSize(rows=100, epochs=3, batch_size=8)
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
def test_steps_follow_the_trainers_rule(training: TrainingRunSize, expected: int) -> None:
    assert training_steps(training) == expected


def test_without_a_measured_run_the_time_is_not_known() -> None:
    assert training_duration(TRAINING, parameters=MILLION, row_characters=50, runs=[]) is None
    useless = replace(RUN, seconds=0.0)
    assert (
        training_duration(TRAINING, parameters=MILLION, row_characters=50, runs=[useless]) is None
    )


def test_one_run_gives_a_range_of_a_quarter() -> None:
    # 39 steps of 8 rows are 312; at ten rows a second 31.2 s, and 20 s beside.
    duration = training_duration(TRAINING, parameters=MILLION, row_characters=50, runs=[RUN])
    assert duration is not None
    assert duration.likely == pytest.approx(51.2)
    assert [duration.low, duration.high] == pytest.approx([38.4, 64.0])
    assert duration.runs == 1


def test_several_runs_give_their_own_range() -> None:
    runs = [replace(RUN, seconds=seconds) for seconds in (300.0, 100.0, 200.0)]
    duration = training_duration(TRAINING, parameters=MILLION, row_characters=50, runs=runs)
    assert duration is not None
    assert [duration.low, duration.likely, duration.high] == pytest.approx([51.2, 82.4, 113.6])
    assert duration.runs == 3


def test_longer_rows_and_larger_models_take_longer_in_proportion() -> None:
    twice = training_duration(TRAINING, parameters=MILLION, row_characters=100, runs=[RUN])
    larger = training_duration(TRAINING, parameters=2 * MILLION, row_characters=50, runs=[RUN])
    assert twice is not None
    assert larger is not None
    assert twice.likely == larger.likely == pytest.approx(82.4)


trainings = some.builds(
    TrainingRunSize,
    rows=some.integers(0, 100_000),
    epochs=some.floats(0.1, 10),
    batch_size=some.integers(1, 64),
    gradient_accumulation=some.integers(1, 16),
)


@given(trainings, some.integers(1, 1000))
def test_more_rows_never_need_fewer_steps_and_larger_batches_never_more(
    training: TrainingRunSize, more: int
) -> None:
    steps = training_steps(training)
    assert training_steps(replace(training, rows=training.rows + more)) >= steps
    assert training_steps(replace(training, batch_size=training.batch_size + more)) <= steps


LLAMA = parse_architecture(LLAMA3_8B)


def test_a_token_of_llama_3_8b_takes_six_times_its_parameters_and_the_attention() -> None:
    # 6 · 8,030,261,248 + 12 · 32 heads · 128 · 32 layers · 8,192 tokens.
    assert training_operations(LLAMA, length=8192) == 48_181_567_488 + 12_884_901_888


def test_the_540_billion_of_palm_need_what_its_appendix_says() -> None:
    # 118 layers, 48 heads of 256, 2,048 tokens: 6 · 540.35e9 + 12 · 118 · 48 · 256 · 2,048.
    palm = replace(
        LLAMA,
        parameters=540_350_000_000,
        active_parameters=540_350_000_000,
        layers=118,
        heads=48,
        kv_heads=1,
        head_dim=256,
    )
    token = training_operations(palm, length=2048)
    # 238.3 thousand tokens a second on 6,144 chips of 275e12 are the 46.2 % of its table 3.
    chips = replace(CARD, peak_rates={Dtype.BFLOAT16: 275e12})
    found = model_flops_utilization(
        tokens_per_second=238_300,
        token_operations=token,
        chip=chips,
        dtype=Dtype.BFLOAT16,
        cards=6144,
    )
    assert found is not None
    assert found.mfu == pytest.approx(0.462, abs=0.003)
    assert not found.meets_target


def test_only_active_parameters_count_for_a_mixture() -> None:
    deepseek = parse_architecture(DEEPSEEK_V3)
    weights = 6 * deepseek.active_parameters
    # 61 layers · 128 heads · (192 + 128) / 2 · 4,096 tokens · 12.
    assert training_operations(deepseek, length=4096) == weights + 12 * 61 * 128 * 160 * 4096


def test_windowed_layers_look_no_further_and_recurrent_ones_not_at_all() -> None:
    gemma = parse_architecture(GEMMA3_27B)
    seen = 10 * 8192 + 52 * 1024
    assert training_operations(gemma, length=8192) == 6 * gemma.parameters + 12 * 32 * 128 * seen
    hybrid = parse_architecture(QWEN3_NEXT)
    weights = 6 * hybrid.active_parameters
    assert training_operations(hybrid, length=4096) == weights + 12 * 16 * 256 * 12 * 4096


def test_frozen_weights_need_no_gradient_of_their_own() -> None:
    attention = 12 * 32 * 128 * 32 * 1024
    operations = training_operations(LLAMA, length=1024, trained=40_000_000)
    assert operations == 4 * LLAMA.parameters + 6 * 40_000_000 + attention


@pytest.mark.parametrize(("speed", "met"), [(99_000.0, False), (100_000.0, True)])
def test_the_target_is_sixty_percent(speed: float, met: bool) -> None:
    # 100,000 tokens a second of 48e9 operations are 4.8e15; eight cards of 1e15 do 8e15.
    found = model_flops_utilization(
        tokens_per_second=speed, token_operations=48e9, chip=CARD, dtype=Dtype.BFLOAT16, cards=8
    )
    assert found is not None
    assert found.mfu == pytest.approx(speed * 48e9 / 8e15)
    assert found.meets_target is met


def test_without_a_published_rate_nothing_is_said() -> None:
    for dtype, cards in ((Dtype.FLOAT32, 8), (Dtype.BFLOAT16, 0)):
        assert (
            model_flops_utilization(
                tokens_per_second=1.0, token_operations=1.0, chip=CARD, dtype=dtype, cards=cards
            )
            is None
        )


def test_twice_the_cards_that_are_one_point_eight_times_as_fast_scale_to_ninety_percent() -> None:
    base, more = (
        ClusterThroughput(cards=8, tokens_per_second=1000),
        ClusterThroughput(cards=16, tokens_per_second=1800),
    )
    assert scaling_efficiency(base, more) == pytest.approx(0.9)
    assert scaling_efficiency(more, base) == pytest.approx(1 / 0.9)


def test_scaling_from_nothing_is_refused() -> None:
    nothing = ClusterThroughput(cards=8, tokens_per_second=0)
    with pytest.raises(
        ValueError,
        match=(
            "scaling efficiency requires a baseline with throughput and cards "
            "above 0, got 0 tokens/s on 8 cards"
        ),
    ):
        scaling_efficiency(nothing, nothing)
