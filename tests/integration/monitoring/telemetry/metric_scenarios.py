"""A small cluster whose cards are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from apps.fleet.models import Card, Cluster, Node
from apps.monitoring.services.metric_ingestion import readings_record
from apps.telemetry.models import CardMetrics, Source
from apps.telemetry.services.metric_batches import MetricBatchResult
from controlplane.domain.health.faults import SignalOrigin
from controlplane.domain.telemetry.metrics import CardMetricsReading, Metric

AT = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
VALUES: Mapping[Metric, float] = {
    Metric.UTILIZATION: 93.0,
    Metric.MEMORY_USED: 60e9,
    Metric.MEMORY_TOTAL: 80e9,
    Metric.TEMPERATURE: 61.0,
    Metric.POWER: 512.5,
    Metric.ECC_CORRECTED: 7.0,
}


def cluster_of(*, nodes: int = 2, cards: int = 4, name: str = "east") -> Cluster:
    """With nodes n0, n1, … of so many cards each."""
    cluster = Cluster.objects.create(name=name, kind="simulated")
    rows = Node.objects.bulk_create(
        [Node(cluster=cluster, name=f"n{number}") for number in range(nodes)]
    )
    Card.objects.bulk_create(
        [
            Card(node=node, index=index, chip="nvidia-h200", memory=80 * 10**9)
            for node in rows
            for index in range(cards)
        ]
    )
    return cluster


def source_of(cluster: Cluster, *, name: str = "dcgm", **columns: object) -> Source:
    values = {"kind": "exporter", "every": 5, **columns}
    return Source.objects.create(name=name, cluster=cluster, **values)


def reading(
    node: str = "n0",
    index: int | None = 0,
    *,
    at: datetime = AT,
    values: Mapping[Metric, float] = VALUES,
    serial: str = "",
    faults: tuple[str, ...] | None = None,
) -> CardMetricsReading:
    return CardMetricsReading(
        node=node,
        index=index,
        at=at,
        metrics=values,
        serial=serial,
        faults=faults,
        vendor="nvidia",
    )


def record(
    source: Source,
    *readings: CardMetricsReading,
    at: datetime = AT,
    origin: SignalOrigin = SignalOrigin.EXPORTER,
    node: str | None = None,
) -> MetricBatchResult:
    return readings_record(source=source, readings=readings, at=at, origin=origin, node=node)


def metrics_of(node: str, index: int) -> CardMetrics:
    return CardMetrics.objects.get(card__node__name=node, card__index=index)


def utilizations(rows: Sequence[CardMetrics]) -> list[float | None]:
    return [row.utilization for row in rows]
