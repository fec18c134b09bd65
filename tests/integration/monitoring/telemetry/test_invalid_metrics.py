"""What comes from outside is not believed: it is refused in words, and spoils nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.fleet.models import Card
from apps.telemetry.models import CardHistory, CardMetrics, Source
from apps.telemetry.services.metric_sources import metric_source_record_scrape
from controlplane.domain.telemetry.metrics import MEASURES, Metric
from controlplane.ports.telemetry import TelemetryBatch
from tests.integration.monitoring.telemetry.metric_scenarios import (
    AT,
    cluster_of,
    metrics_of,
    reading,
    record,
    source_of,
)

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def source() -> Source:
    return source_of(cluster_of())


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), float("-inf"), -1, 100.001, 1e308, 10**400, "93", True, b"9", [9]],
    ids=repr,
)
def test_a_value_that_cannot_be_is_refused_and_the_others_are_kept(
    source: Source, value: Any
) -> None:
    values = {Metric.UTILIZATION: value, Metric.POWER: 300.0}

    recorded = record(source, reading(values=values), reading("n1", 1))

    assert (recorded.cards, recorded.refused) == (2, 1)
    assert recorded.refusals[0].startswith("1× the value of utilization is out of range")
    row = metrics_of("n0", 0)
    assert (row.utilization, row.power) == (None, 300.0)


@pytest.mark.parametrize("metric", Metric)
def test_the_bounds_of_every_metric_can_be_kept(source: Source, metric: Metric) -> None:
    measure = MEASURES[metric]
    for number, value in enumerate((measure.lowest, measure.highest, 1e-300)):
        values = {metric: max(value, measure.lowest)}
        record(source, reading("n0", number, values=values))
        assert getattr(metrics_of("n0", number), metric) == pytest.approx(values[metric])
    assert CardHistory.objects.count() == 3


def test_times_that_cannot_be_are_refused(source: Source) -> None:
    minute = timedelta(minutes=1)
    recorded = record(
        source,
        reading("n0", 0, at=AT + 2 * minute),
        reading("n0", 1, at=AT - DAY - minute),
        reading("n0", 2, at=AT + minute / 2),
        reading("n0", 3, at=AT - DAY + minute),
    )
    assert (recorded.cards, recorded.refused) == (2, 2)
    assert {word.split(" (")[0] for word in recorded.refusals} == {
        "1× the timestamp is more than a minute in the future",
        "1× the timestamp is more than a day old",
    }
    # A clock a little ahead is set right: nothing was measured after it came.
    assert metrics_of("n0", 2).at == AT


def test_unknown_cards_and_nodes_are_counted_and_not_made(source: Source) -> None:
    strangers = [reading(f"x{number}", number) for number in range(500)]
    recorded = record(source, *strangers, reading("n0", 99), reading("n1", 0))

    assert (recorded.cards, recorded.refused) == (1, 501)
    assert set(recorded.refusals) == {
        "500× the cluster does not have this node (for example 'x0/0')",
        "1× the node does not have this card (for example 'n0/99')",
    }
    assert Card.objects.count() == 8


def test_one_source_says_nothing_of_another_cluster(source: Source) -> None:
    elsewhere = source_of(cluster_of(name="west", nodes=4), name="west")
    recorded = record(source, reading("n3", 0))
    assert recorded.refused == 1
    assert record(elsewhere, reading("n3", 0)).cards == 1


def test_texts_that_no_database_takes_do_no_harm(source: Source) -> None:
    recorded = record(
        source,
        reading("n0", 0, serial="GPU\x00-\ud800"),
        reading("\x00\ud800" * 50, 0),
        reading("n0", 1, serial="S" * 5000),
    )

    assert (recorded.cards, recorded.refused) == (2, 1)
    assert metrics_of("n0", 0).serial == ""
    assert len(metrics_of("n0", 1).serial) == 80
    batch = TelemetryBatch(unreachable={"n\x00\ud800": "why\x00"})
    metric_source_record_scrape(source=source, at=AT, recorded=recorded, batch=batch)
    source.refresh_from_db()
    assert source.refused == 1
    assert list(source.unreachable) == ["n??"]


def test_reasons_are_told_up_to_a_bound_however_many_there_are(source: Source) -> None:
    readings = [
        reading("n0", 0, values={metric: float("nan")}, at=AT - timedelta(seconds=number))
        for number, metric in enumerate(Metric)
    ]
    for one in readings:
        assert len(record(source, one, at=AT).refusals) <= 20


def test_a_reading_that_says_nothing_is_no_reading(source: Source) -> None:
    recorded = record(source, reading(values={}), reading("n0", 1, values={}, faults=()))
    assert (recorded.cards, recorded.refused) == (1, 1)
    assert CardMetrics.objects.count() == 1
