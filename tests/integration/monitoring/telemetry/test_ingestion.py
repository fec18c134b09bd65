"""What is told of cards is kept once, newest values and history alike."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection

from apps.fleet.models import Card
from apps.telemetry.models import CardHistory, CardMetrics
from controlplane.domain.telemetry.metrics import Metric
from tests.integration.monitoring.telemetry.metric_scenarios import (
    AT,
    VALUES,
    cluster_of,
    metrics_of,
    reading,
    record,
    source_of,
)

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)


def test_figures_are_the_newest_of_their_card_and_part_of_its_history() -> None:
    source = source_of(cluster_of())

    recorded = record(source, reading("n0", 1), reading("n1", 3, values={Metric.POWER: 90}))

    assert (recorded.cards, recorded.newest, recorded.refused) == (2, 2, 0)
    row = metrics_of("n0", 1)
    assert {metric: getattr(row, metric) for metric in VALUES} == dict(VALUES)
    assert (row.at, row.received_at, row.source, row.clock) == (AT, AT, source, None)
    entry = CardHistory.objects.get(card=row.card)
    assert (entry.at, entry.utilization, entry.memory_used) == (AT, 93.0, 60e9)
    assert metrics_of("n1", 3).power == 90


def test_a_batch_that_comes_again_changes_nothing() -> None:
    source = source_of(cluster_of())
    batch = [reading("n0", index, faults=("79",)) for index in range(4)]
    record(source, *batch)
    before = list(CardMetrics.objects.values()), list(CardHistory.objects.values("card", "at"))

    again = record(source, *batch, at=AT + SECOND)

    assert (again.cards, again.newest, again.signals) == (4, 0, 0)
    assert before == (
        list(CardMetrics.objects.values()),
        list(CardHistory.objects.values("card", "at")),
    )


def test_what_was_measured_earlier_goes_to_the_history_only() -> None:
    source = source_of(cluster_of())
    record(source, reading(faults=()))

    earlier = reading(at=AT - 60 * SECOND, values={Metric.POWER: 1.0}, faults=("79",))
    late = record(source, earlier, at=AT + SECOND)

    assert (late.cards, late.newest, late.signals) == (1, 0, 0)
    assert metrics_of("n0", 0).power == 512.5
    powers = CardHistory.objects.order_by("at").values_list("power", flat=True)
    assert list(powers) == [1.0, 512.5]


def test_of_one_card_told_twice_the_newest_counts() -> None:
    source = source_of(cluster_of())
    newer = reading(values={Metric.POWER: 2.0}, at=AT)
    older = replace(newer, at=AT - SECOND, metrics={Metric.POWER: 1.0})

    record(source, newer, older)

    assert metrics_of("n0", 0).power == 2.0


def test_what_is_not_measured_any_more_is_not_kept_from_before() -> None:
    source = source_of(cluster_of())
    record(source, reading())
    record(source, reading(at=AT + SECOND, values={Metric.POWER: 3.0}), at=AT + SECOND)

    assert metrics_of("n0", 0).utilization is None


def test_a_card_is_found_by_its_serial_number_where_no_place_is_said() -> None:
    cluster = cluster_of()
    Card.objects.filter(node__name="n1", index=2).update(serial="S-12")
    source = source_of(cluster)

    recorded = record(
        source, reading("n1", None, serial="S-12"), reading("n0", None, serial="S-12")
    )

    assert (recorded.cards, recorded.refused) == (1, 1)
    assert metrics_of("n1", 2).power == 512.5


def test_a_card_that_comes_to_the_cluster_is_known_with_the_next_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apps.telemetry.services.metric_batches.SHORTEST", 0.0)
    cluster = cluster_of(nodes=1, cards=1)
    source = source_of(cluster)
    assert record(source, reading("n0", 1)).refused == 1

    Card.objects.create(node=cluster.nodes.get(), index=1, chip="nvidia-h200")

    assert record(source, reading("n0", 1)).cards == 1


def test_figures_of_a_day_without_a_partition_find_one() -> None:
    source = source_of(cluster_of())
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('telemetry_history_20260228')")
        assert cursor.fetchone()[0] is None

    yesterday = AT - timedelta(hours=13)
    record(source, reading(at=yesterday))

    assert CardHistory.objects.get().at == yesterday


def test_statements_do_not_grow_in_number_with_the_cards(
    django_assert_max_num_queries: object,
) -> None:
    cluster = cluster_of(nodes=20, cards=8)
    source = source_of(cluster)
    batch = [reading(f"n{node}", index) for node in range(20) for index in range(8)]
    record(source, *batch)

    later = [replace(one, at=AT + SECOND) for one in batch]
    with django_assert_max_num_queries(8):  # type: ignore[operator]
        assert record(source, *later, at=AT + SECOND).newest == 160
