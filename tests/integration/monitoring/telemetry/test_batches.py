"""A sheet of figures becomes what its readings would have become."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from apps.fleet.models import Card
from apps.monitoring.models import Fault
from apps.monitoring.services.metric_ingestion import readings_record
from apps.telemetry.models import CardHistory, CardMetrics, Source
from apps.telemetry.services import metric_batches
from apps.telemetry.services.metric_batches import (
    MetricBatchResult,
    card_index,
    card_index_invalidate,
)
from controlplane.domain.telemetry.metric_batches import CardIdentity, MetricBatch
from controlplane.domain.telemetry.metrics import CardMetricsReading, Metric
from tests.integration.monitoring.telemetry.metric_scenarios import (
    AT,
    cluster_of,
    metrics_of,
    reading,
    record,
    source_of,
)

pytestmark = pytest.mark.django_db
SECOND, NAN = timedelta(seconds=1), float("nan")
SERIALS = ("S0", 'S"1\\', "S,{2}", "")


def batch_of(
    power: tuple[float, ...] = (100, 200, 300, 400),
    utilization: tuple[float, ...] = (10, NAN, 30, 1e-40),
    *,
    at: datetime = AT + SECOND,
    node: str = "n0",
    serials: tuple[str, ...] = SERIALS,
    faults: Mapping[int, tuple[str, ...]] | None = None,
    speaks: bool = True,
) -> MetricBatch:
    return MetricBatch(
        whose=[CardIdentity(node, index, serial) for index, serial in enumerate(serials)],
        at=at,
        metrics={
            Metric.POWER: np.array(power, dtype=np.float64),
            Metric.UTILIZATION: np.array(utilization, dtype=np.float64),
        },
        speaks=np.full(len(serials), speaks),
        faults=faults or {},
        vendor="nvidia",
    )


@pytest.fixture
def source() -> Source:
    source = source_of(cluster_of())
    of_cards = [reading("n0", index, serial=serial) for index, serial in enumerate(SERIALS)]
    record(source, *of_cards, at=AT)
    card_index_invalidate(source.cluster_id)
    return source


def stored_rows() -> list[Any]:
    metrics = [
        {name: value for name, value in row.items() if name not in ("card_id", "source_id")}
        for row in CardMetrics.objects.order_by("card_id").values()
    ]
    history = CardHistory.objects.order_by("card_id", "at").values_list(
        "at", "power", "utilization"
    )
    faults = Fault.objects.order_by("card_id", "code").values_list("code", "level", "ended_at")
    return [metrics, list(history), list(faults)]


def take(
    source: Source, *batches: MetricBatch, readings: tuple[CardMetricsReading, ...] = ()
) -> MetricBatchResult:
    return readings_record(source=source, readings=readings, metric_batches=batches, at=AT + SECOND)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many cards are judged one by one."""
    judged: list[int] = []
    before = metric_batches._validated_metric_row

    def row(card: int, *values: Any, **named: Any) -> Any:
        judged.append(card)
        return before(card, *values, **named)

    monkeypatch.setattr(metric_batches, "_validated_metric_row", row)
    return judged


def test_its_figures_are_kept_without_an_object_for_each_card(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = watched(monkeypatch)

    recorded = take(source, batch_of())

    assert (recorded.cards, recorded.newest, recorded.refused, judged) == (4, 4, 0, [])
    rows = [metrics_of("n0", index) for index in range(4)]
    assert [row.power for row in rows] == [100, 200, 300, 400]
    assert [row.utilization for row in rows] == [10, None, 30, 0]
    assert [row.serial for row in rows] == list(SERIALS)
    assert {row.at for row in rows} == {AT + SECOND}
    assert CardHistory.objects.filter(at=AT + SECOND).count() == 4
    again = take(source, batch_of())
    assert (again.cards, again.newest) == (4, 0)


@pytest.mark.parametrize(
    "unusual",
    [
        batch_of(),
        batch_of(faults={2: ("79",)}),
        batch_of(power=(100, -5, 300, 1e9)),
        batch_of(power=(100, float("inf"), 300, 400)),
        batch_of(power=(100, NAN, 300, 400), speaks=False),
        batch_of(at=AT + timedelta(minutes=5)),
        batch_of(at=AT - timedelta(days=2)),
        batch_of(at=AT + 30 * SECOND),
        batch_of(at=AT - SECOND),
        batch_of(node="n7"),
        batch_of(serials=("S0", "other", "S,{2}", "")),
        batch_of(serials=("S,{2}", SERIALS[1], "S0", "")),
    ],
    ids=range(12),
)
def test_whatever_is_in_it_becomes_what_its_readings_become(
    source: Source, unusual: MetricBatch
) -> None:
    twin = source_of(cluster_of(name="west"), name="west")
    twin_readings = [reading("n0", index, serial=serial) for index, serial in enumerate(SERIALS)]
    record(twin, *twin_readings, at=AT)
    record(source, reading("n0", 3, at=AT + SECOND / 2, faults=("48",)), at=AT + SECOND)
    record(twin, reading("n0", 3, at=AT + SECOND / 2, faults=("48",)), at=AT + SECOND)
    card_index_invalidate(twin.cluster_id)

    by_batch = take(source, unusual)
    by_readings = readings_record(source=twin, readings=unusual.readings(), at=AT + SECOND)

    assert by_batch == by_readings
    metrics, history, faults = stored_rows()
    half = len(metrics) // 2
    assert metrics[:half] == metrics[half:]
    assert history[: len(history) // 2] == history[len(history) // 2 :]
    assert faults[: len(faults) // 2] == faults[len(faults) // 2 :]


def test_a_card_that_is_told_of_twice_keeps_what_is_newest(source: Source) -> None:
    newer = reading("n0", 1, at=AT + SECOND, values={Metric.POWER: 7.0})
    older = batch_of(at=AT + SECOND / 2)

    assert take(source, older, readings=(newer,)).cards == 4
    assert metrics_of("n0", 1).power == 7
    assert take(source, older, batch_of(at=AT + SECOND, power=(1, 2, 3, 4))).cards == 4
    assert metrics_of("n0", 0).power == 1


@pytest.mark.parametrize("ahead", [-SECOND / 2, SECOND / 2])
def test_a_reading_that_proves_to_be_of_a_card_of_a_sheet_takes_it_apart(
    source: Source, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    monkeypatch.setattr(metric_batches, "SHORTEST", 0.0)
    card_index(source.cluster_id)
    # What the process knows of the cluster's cards is older than this card's serial number.
    Card.objects.filter(node__name="n0", index=3).update(serial="S3")
    half = AT + SECOND / 2
    by_serial = reading("n0", None, serial="S3", at=half + ahead, values={Metric.POWER: 7.0})
    unknown = reading("n9", 0)

    recorded = take(source, batch_of(at=half), readings=(unknown, by_serial))

    assert (recorded.cards, recorded.refused) == (4, 1)
    powers = [metrics_of("n0", index).power for index in range(4)]
    assert powers == [100, 200, 300, 7 if ahead > timedelta() else 400]


def test_codes_of_a_sheet_stand_and_end(source: Source) -> None:
    assert take(source, batch_of(faults={1: ("79",)})).signals == 1
    assert Fault.objects.get(ended_at=None).card == metrics_of("n0", 1).card
    later = AT + 2 * SECOND
    readings_record(source=source, readings=(), metric_batches=[batch_of(at=later)], at=later)
    assert not Fault.objects.filter(ended_at=None).exists()
