"""The history has a partition for each day, sums for each hour, and an end."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection
from pytest_django import Settings

from apps.telemetry.models import CardHistory, CardHour, Source, SummedHour
from apps.telemetry.services.metric_storage import (
    history_partition_days,
    history_partitions_create,
    metric_history_maintain,
)
from controlplane.domain.telemetry.metrics import Metric
from tests.integration.monitoring.telemetry.metric_scenarios import (
    AT,
    cluster_of,
    reading,
    record,
    source_of,
)

pytestmark = pytest.mark.django_db
HOUR = datetime(2026, 3, 1, 11, tzinfo=UTC)


@pytest.fixture
def source() -> Source:
    return source_of(cluster_of())


def tidy(at: datetime = AT) -> None:
    """Turns until nothing is left to do."""
    for _ in range(50):
        if metric_history_maintain(at=at) == 0:
            return
    raise AssertionError("there is always something left to sum up")


@pytest.fixture(autouse=True)
def only_march(db: None, settings: Settings) -> None:
    """Without the days that migrations made for the real calendar."""
    with connection.cursor() as cursor:
        for day in history_partition_days():
            cursor.execute(f"DROP TABLE telemetry_history_{day:%Y%m%d}")


def test_days_are_made_ahead_once_and_dropped_when_they_are_old(settings: Settings) -> None:
    settings.NINEFOLD_HISTORY_DAYS = 3
    history_partitions_create(days=[date(2026, 2, day) for day in (20, 25, 26)])

    metric_history_maintain(at=AT)

    assert [day.isoformat() for day in history_partition_days()] == [
        "2026-02-26",
        "2026-02-28",
        "2026-03-01",
        "2026-03-02",
        "2026-03-03",
    ]
    assert history_partitions_create(days=[date(2026, 3, 1)]) == 0


def test_an_hour_is_summed_up_when_it_is_over(source: Source) -> None:
    for minute, utilization, errors in ((0, 10.0, 1), (20, 50.0, 1), (59, 90.0, 4)):
        at = HOUR + timedelta(minutes=minute)
        values = {Metric.UTILIZATION: utilization, Metric.ECC_UNCORRECTED: errors}
        record(source, reading(at=at, values=values), at=at)
    record(source, reading(at=AT, values={Metric.UTILIZATION: 1.0}))

    tidy()

    hour = CardHour.objects.get()
    assert (hour.hour, hour.samples) == (HOUR, 3)
    assert (hour.utilization_min, hour.utilization_mean, hour.utilization_max) == (10, 50, 90)
    assert (hour.ecc_uncorrected_max, hour.power_mean) == (4, None)


def test_figures_that_come_late_are_in_the_sums_of_their_hour(source: Source) -> None:
    record(source, reading(at=HOUR, values={Metric.POWER: 100.0}), at=HOUR)
    tidy()
    assert CardHour.objects.get().power_max == 100

    late = HOUR + timedelta(minutes=30)
    record(source, reading(at=late, values={Metric.POWER: 300.0}), at=AT)
    tidy()

    assert CardHour.objects.get().power_max == 300


def test_an_hour_that_was_summed_up_is_not_summed_up_again(source: Source) -> None:
    record(source, reading(at=HOUR), at=HOUR)
    tidy()
    before = SummedHour.objects.get(hour=HOUR).summed_at
    tidy(AT + timedelta(minutes=5))
    assert SummedHour.objects.get(hour=HOUR).summed_at == before


def test_sums_outlive_their_figures_and_end_too(source: Source, settings: Settings) -> None:
    settings.NINEFOLD_HISTORY_DAYS, settings.NINEFOLD_HOURS_DAYS = 2, 10
    record(source, reading(at=HOUR), at=HOUR)
    tidy()
    tidy(AT + timedelta(days=5))
    assert (CardHistory.objects.count(), CardHour.objects.count()) == (0, 1)
    tidy(AT + timedelta(days=11))
    assert CardHour.objects.count() == 0
    assert not SummedHour.objects.filter(hour=HOUR).exists()
