"""Metrics of a card over time, in as many points as a chart can show.

Short ranges come from what was measured, cut into steps and averaged by the database; long ones from the hourly
sums. A gap stays one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from django.db.models import (
    Aggregate,
    Avg,
    DateTimeField,
    DurationField,
    F,
    Func,
    Max,
    Value,
)

from apps.fleet.models import Card
from apps.telemetry.models import CardHistory, CardHour
from controlplane.domain.telemetry import MEASURES, Metric


class ChartRange(StrEnum):
    """Time range of a chart."""

    HOUR = "1h"
    HOURS = "6h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"


class ChartResolution(NamedTuple):
    back: timedelta
    #: Between two points.
    step: timedelta


REACHES: Mapping[ChartRange, ChartResolution] = {
    ChartRange.HOUR: ChartResolution(timedelta(hours=1), timedelta(seconds=15)),
    ChartRange.HOURS: ChartResolution(timedelta(hours=6), timedelta(minutes=1)),
    ChartRange.DAY: ChartResolution(timedelta(hours=24), timedelta(minutes=5)),
    ChartRange.WEEK: ChartResolution(timedelta(days=7), timedelta(hours=1)),
    ChartRange.MONTH: ChartResolution(timedelta(days=30), timedelta(hours=1)),
}
_HOUR = timedelta(hours=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


#: So many times the usual distance between two points is a gap.
_GAP = 3
_Row = tuple[float | None, ...]
_Found = Mapping[datetime, _Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSeries:
    """Values of several metrics at the same moments, in the order of time; None is not measured."""

    times: Sequence[datetime]
    values: Mapping[Metric, Sequence[float | None]]


def card_series(
    card: Card, *, metrics: Sequence[Metric], reach: ChartRange, at: datetime
) -> CardSeries:
    """Values from the start of the range to ``at``. Counters: last value; other metrics: mean of each step."""
    back, step = REACHES[reach]
    if step >= _HOUR:
        found = _series_from_hourly_rows(card, metrics=metrics, since=at - back)
    else:
        found = _series_from_history(card, metrics=metrics, since=at - back, step=step, at=at)
    rows = _insert_gap_rows(found, step=step, nothing=(None,) * len(metrics))
    return CardSeries(
        times=[time for time, _ in rows],
        values={metric: [row[place] for _, row in rows] for place, metric in enumerate(metrics)},
    )


def _insert_gap_rows(
    found: _Found, *, step: timedelta, nothing: _Row
) -> list[tuple[datetime, _Row]]:
    """The rows in order, with an empty one where something is missing.

    What is measured less often than a chart has points is no row of gaps: one is what lasts longer than usual.
    """
    times = sorted(found)
    apart = sorted(later - one for one, later in pairwise(times)) or [step]
    median = apart[len(apart) // 2]
    rows: list[tuple[datetime, _Row]] = []
    for time in times:
        if rows and time - rows[-1][0] > _GAP * max(median, step):
            rows.append((rows[-1][0] + step, nothing))
        rows.append((time, found[time]))
    return rows


def _series_from_history(
    card: Card, *, metrics: Sequence[Metric], since: datetime, step: timedelta, at: datetime
) -> _Found:
    binned = Func(
        Value(step, DurationField()),
        F("at"),
        Value(_EPOCH, DateTimeField()),
        function="date_bin",
        output_field=DateTimeField(),
    )
    rows = (
        CardHistory.objects.filter(card=card, at__gte=since, at__lte=at)
        .order_by()
        .annotate(bin=binned)
        .values("bin")
        .annotate(**{f"the_{metric.value}": _hourly_aggregate(metric) for metric in metrics})
        .values_list("bin", *(f"the_{metric.value}" for metric in metrics))
    )
    return {row[0]: tuple(row[1:]) for row in rows}


def _hourly_aggregate(metric: Metric) -> Aggregate:
    """The last value of a counter; the mean of other metrics."""
    return Max(metric.value) if MEASURES[metric].counter else Avg(metric.value)


def _series_from_hourly_rows(card: Card, *, metrics: Sequence[Metric], since: datetime) -> _Found:
    columns = [_hourly_column(metric) for metric in metrics]
    rows = CardHour.objects.filter(card=card, hour__gte=since).order_by("hour")
    return {row[0]: tuple(row[1:]) for row in rows.values_list("hour", *columns)}


def _hourly_column(metric: Metric) -> str:
    """Column of the hourly aggregate: the maximum where there is no mean."""
    means = {field.name for field in CardHour._meta.get_fields()}
    mean = f"{metric.value}_mean"
    return mean if mean in means else f"{metric.value}_max"
