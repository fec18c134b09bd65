"""When a condition over figures fires, and when nobody can say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.health.rules import (
    HealthRuleCondition,
    MetricSample,
    MetricTransform,
    RuleOperator,
    RuleVerdict,
    evaluate_condition,
    simulate_condition_firings,
)
from controlplane.domain.telemetry.metrics import Metric
from tests.unit.health.snapshots import NOW

HOT = HealthRuleCondition(
    metric=Metric.TEMPERATURE, op=RuleOperator.AT_LEAST, value=90, lasting=timedelta(seconds=60)
)
GROWS = HealthRuleCondition(
    metric=Metric.ECC_UNCORRECTED, how=MetricTransform.CHANGE, op=RuleOperator.ABOVE, value=0
)


def every(seconds: float, *values: float) -> list[MetricSample]:
    """Measurements so far apart, the last of them now."""
    first = len(values) - 1
    return [
        MetricSample(at=NOW - timedelta(seconds=seconds * (first - place)), value=value)
        for place, value in enumerate(values)
    ]


def verdict(condition: HealthRuleCondition, series: Sequence[MetricSample]) -> RuleVerdict:
    return evaluate_condition(condition, series, NOW).verdict


def test_it_fires_once_it_has_held_for_long_enough() -> None:
    assert verdict(HOT, every(10, 80, 91, 92, 91, 90)) is RuleVerdict.PENDING
    assert verdict(HOT, every(10, 80, 91, 92, 91, 90, 95, 91, 99)) is RuleVerdict.FIRES


def test_one_measurement_below_begins_the_time_anew() -> None:
    assert verdict(HOT, every(10, *[95] * 9, 89, 95)) is RuleVerdict.PENDING
    assert verdict(HOT, every(10, *[95] * 9, 89)) is RuleVerdict.CLEAR


def test_nothing_is_said_about_what_was_not_measured() -> None:
    assert verdict(HOT, []) is RuleVerdict.UNKNOWN
    old = [
        MetricSample(at=sample.at - timedelta(minutes=6), value=95)
        for sample in every(10, *[95] * 9)
    ]
    assert verdict(HOT, old) is RuleVerdict.UNKNOWN


def test_behind_a_gap_the_time_begins_anew() -> None:
    assert verdict(HOT, every(299, 95, 95)) is RuleVerdict.FIRES
    assert verdict(HOT, every(301, 95, 95)) is RuleVerdict.PENDING


def test_what_lies_in_the_future_is_left_aside() -> None:
    later = MetricSample(at=NOW + timedelta(seconds=5), value=20)
    assert verdict(HOT, [*every(10, *[95] * 9), later]) is RuleVerdict.FIRES


@pytest.mark.parametrize(
    ("op", "holding"),
    [
        (RuleOperator.ABOVE, [2]),
        (RuleOperator.AT_LEAST, [1, 2]),
        (RuleOperator.BELOW, [0]),
        (RuleOperator.AT_MOST, [0, 1]),
        (RuleOperator.IS, [1]),
    ],
)
def test_each_comparison_holds_where_its_sign_says(op: RuleOperator, holding: list[float]) -> None:
    condition = HealthRuleCondition(metric=Metric.UTILIZATION, op=op, value=1)
    fires = [
        value for value in (0, 1, 2) if verdict(condition, every(10, value)) is RuleVerdict.FIRES
    ]
    assert fires == holding


def test_a_counter_that_grew_fires_until_the_growth_lies_behind_its_window() -> None:
    assert verdict(GROWS, every(60, 3, 3, 4, 4)) is RuleVerdict.FIRES
    assert verdict(GROWS, every(60, 3, 4, *[4] * 11)) is RuleVerdict.CLEAR


def test_one_measurement_of_a_counter_says_nothing() -> None:
    assert verdict(GROWS, every(60, 7)) is RuleVerdict.UNKNOWN


def test_a_counter_that_fell_was_reset_and_shows_what_came_since() -> None:
    assert verdict(GROWS, every(60, 7, 7, 0, 0)) is RuleVerdict.CLEAR
    found = evaluate_condition(GROWS, every(60, 7, 8, 0, 2), NOW)
    assert (found.verdict, found.value) == (RuleVerdict.FIRES, 3)


def test_a_figure_that_is_no_counter_may_fall() -> None:
    falls = HealthRuleCondition(
        metric=Metric.CLOCK,
        how=MetricTransform.CHANGE,
        op=RuleOperator.BELOW,
        value=-5e8,
        within=timedelta(minutes=5),
    )
    assert verdict(falls, every(30, 1.9e9, 1.9e9, 1.2e9)) is RuleVerdict.FIRES


def test_a_rate_is_a_minute_whatever_lies_between_the_measurements() -> None:
    rate = HealthRuleCondition(
        metric=Metric.LINK_ERRORS, how=MetricTransform.RATE, op=RuleOperator.ABOVE, value=0
    )
    for seconds in (5.0, 15.0, 60.0):
        series = every(seconds, *(10 * seconds * n for n in range(5)))
        assert evaluate_condition(rate, series, NOW).value == pytest.approx(600)


def test_a_dry_run_tells_when_it_would_have_fired_how_long_and_how_bad() -> None:
    series = every(30, 80, 91, 95, 97, 93, 80, 80, 92, 92, 92)
    first, second = simulate_condition_firings(HOT, series)
    assert first.began_at == series[1].at
    assert first.fired_at == series[3].at
    assert first.ended_at == series[5].at
    assert first.worst == 97
    assert second.ended_at is None


def test_a_dry_run_ends_what_fired_at_the_last_measurement_before_a_gap() -> None:
    before = every(30, *[95] * 5)
    after = [MetricSample(at=NOW + timedelta(hours=1), value=95)]
    (fired,) = simulate_condition_firings(HOT, [*before, *after])
    assert fired.ended_at == NOW


CONDITIONS = st.builds(
    HealthRuleCondition,
    metric=st.sampled_from([Metric.TEMPERATURE, Metric.ECC_CORRECTED]),
    how=st.sampled_from(MetricTransform),
    op=st.sampled_from(RuleOperator),
    value=st.integers(-3, 6).map(float),
    within=st.integers(1, 900).map(lambda seconds: timedelta(seconds=seconds)),
    lasting=st.integers(0, 300).map(lambda seconds: timedelta(seconds=seconds)),
)


@given(CONDITIONS, st.lists(st.tuples(st.integers(1, 400), st.integers(0, 5)), max_size=30))
def test_a_dry_run_fires_exactly_when_the_rule_would_have(
    condition: HealthRuleCondition, steps: list[tuple[int, int]]
) -> None:
    at, series = NOW, []
    for pause, value in steps:
        at += timedelta(seconds=pause)
        series.append(MetricSample(at=at, value=value))
    firings = simulate_condition_firings(condition, series)
    for sample in series:
        fires = evaluate_condition(condition, series, sample.at).verdict is RuleVerdict.FIRES
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
