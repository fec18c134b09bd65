"""When a condition over figures fires, and when nobody can say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.health.rules import (
    MetricCondition,
    MetricSample,
    MetricTransform,
    dry_run_condition,
    evaluate_condition,
)
from controlplane.domain.rules.conditions import Comparison, RuleState
from controlplane.domain.telemetry.metrics import Metric
from tests.unit.health.snapshots import NOW

HOT = MetricCondition(
    metric=Metric.TEMPERATURE, op=Comparison.AT_LEAST, threshold=90, lasts=timedelta(seconds=60)
)
GROWS = MetricCondition(
    metric=Metric.ECC_UNCORRECTED, how=MetricTransform.CHANGE, op=Comparison.ABOVE, threshold=0
)


def every(seconds: float, *values: float) -> list[MetricSample]:
    """Measurements so far apart, the last of them now."""
    first = len(values) - 1
    return [
        MetricSample(at=NOW - timedelta(seconds=seconds * (first - place)), value=value)
        for place, value in enumerate(values)
    ]


def verdict(
    condition: MetricCondition, series: Sequence[MetricSample], at: datetime = NOW
) -> RuleState | str:
    step = evaluate_condition(condition, series, at)
    if step is None:
        return "unknown"
    return "clear" if step.progress is None else step.progress.state


def test_it_fires_once_it_has_held_for_long_enough() -> None:
    assert verdict(HOT, every(10, 80, 91, 92, 91, 90)) == RuleState.PENDING
    assert verdict(HOT, every(10, 80, 91, 92, 91, 90, 95, 91, 99)) == RuleState.FIRING


def test_one_measurement_below_begins_the_time_anew() -> None:
    assert verdict(HOT, every(10, *[95] * 9, 89, 95)) == RuleState.PENDING
    assert verdict(HOT, every(10, *[95] * 9, 89)) == "clear"


def test_nothing_is_said_about_what_was_not_measured() -> None:
    assert verdict(HOT, []) == "unknown"
    old = [
        MetricSample(at=sample.at - timedelta(minutes=6), value=95)
        for sample in every(10, *[95] * 9)
    ]
    assert verdict(HOT, old) == "unknown"


def test_behind_a_gap_the_time_begins_anew() -> None:
    assert verdict(HOT, every(299, 95, 95)) == RuleState.FIRING
    assert verdict(HOT, every(301, 95, 95)) == RuleState.PENDING


def test_what_lies_in_the_future_is_left_aside() -> None:
    later = MetricSample(at=NOW + timedelta(seconds=5), value=20)
    assert verdict(HOT, [*every(10, *[95] * 9), later]) == RuleState.FIRING


@pytest.mark.parametrize(
    ("op", "holding"),
    [
        (Comparison.ABOVE, [2]),
        (Comparison.AT_LEAST, [1, 2]),
        (Comparison.BELOW, [0]),
        (Comparison.AT_MOST, [0, 1]),
        (Comparison.EQUAL, [1]),
    ],
)
def test_each_comparison_holds_where_its_sign_says(op: Comparison, holding: list[float]) -> None:
    condition = MetricCondition(metric=Metric.UTILIZATION, op=op, threshold=1)
    fires = [
        value for value in (0, 1, 2) if verdict(condition, every(10, value)) == RuleState.FIRING
    ]
    assert fires == holding


def test_a_counter_that_grew_fires_until_the_growth_lies_behind_its_window() -> None:
    assert verdict(GROWS, every(60, 3, 3, 4, 4)) == RuleState.FIRING
    assert verdict(GROWS, every(60, 3, 4, *[4] * 11)) == "clear"


def test_one_measurement_of_a_counter_says_nothing() -> None:
    assert verdict(GROWS, every(60, 7)) == "unknown"


def test_a_counter_that_fell_was_reset_and_shows_what_came_since() -> None:
    assert verdict(GROWS, every(60, 7, 7, 0, 0)) == "clear"
    found = evaluate_condition(GROWS, every(60, 7, 8, 0, 2), NOW)
    assert found is not None
    assert (found.fired_at, found.value) == (NOW - timedelta(minutes=2), 3)


def test_a_figure_that_is_no_counter_may_fall() -> None:
    falls = MetricCondition(
        metric=Metric.CLOCK,
        how=MetricTransform.CHANGE,
        op=Comparison.BELOW,
        threshold=-5e8,
        within=timedelta(minutes=5),
    )
    assert verdict(falls, every(30, 1.9e9, 1.9e9, 1.2e9)) == RuleState.FIRING


def test_a_rate_is_a_minute_whatever_lies_between_the_measurements() -> None:
    rate = MetricCondition(
        metric=Metric.LINK_ERRORS, how=MetricTransform.RATE, op=Comparison.ABOVE, threshold=0
    )
    for seconds in (5.0, 15.0, 60.0):
        series = every(seconds, *(10 * seconds * n for n in range(5)))
        found = evaluate_condition(rate, series, NOW)
        assert found is not None
        assert found.value == pytest.approx(600)


def test_a_dry_run_tells_when_it_would_have_fired_how_long_and_how_bad() -> None:
    series = every(30, 80, 91, 95, 97, 93, 80, 80, 92, 92, 92)
    first, second = dry_run_condition(HOT, series)
    assert first.began_at == series[1].at
    assert first.fired_at == series[3].at
    assert first.ended_at == series[5].at
    assert first.worst == 97
    assert second.ended_at is None


def test_a_dry_run_ends_what_fired_at_the_last_measurement_before_a_gap() -> None:
    before = every(30, *[95] * 5)
    after = [MetricSample(at=NOW + timedelta(hours=1), value=95)]
    (fired,) = dry_run_condition(HOT, [*before, *after])
    assert fired.ended_at == NOW


CONDITIONS = st.builds(
    MetricCondition,
    metric=st.sampled_from([Metric.TEMPERATURE, Metric.ECC_CORRECTED]),
    how=st.sampled_from(MetricTransform),
    op=st.sampled_from(Comparison),
    threshold=st.integers(-3, 6).map(float),
    within=st.integers(1, 900).map(lambda seconds: timedelta(seconds=seconds)),
    lasts=st.integers(0, 300).map(lambda seconds: timedelta(seconds=seconds)),
)


@given(CONDITIONS, st.lists(st.tuples(st.integers(1, 400), st.integers(0, 5)), max_size=30))
def test_a_dry_run_fires_exactly_when_the_rule_would_have(
    condition: MetricCondition, steps: list[tuple[int, int]]
) -> None:
    at, series = NOW, []
    for pause, value in steps:
        at += timedelta(seconds=pause)
        series.append(MetricSample(at=at, value=value))
    firings = dry_run_condition(condition, series)
    for sample in series:
        fires = verdict(condition, series, sample.at) == RuleState.FIRING
        covered = any(
            each.fired_at <= sample.at
            and (
                each.ended_at is None
                or sample.at < each.ended_at
                or (sample.at == each.ended_at and fires)
            )
            for each in firings
        )
        assert fires == covered
