"""Fleets and signs for tests of their health."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from apps.fleet import services as fleet
from apps.fleet.models import Card, Cluster
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.domain.health.faults import FaultLevel, FaultSignal, SignalOrigin
from controlplane.ports.clusters import ObservedCard, ObservedNode

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)


def ward(
    name: str = "north", *, nodes: int = 2, cards: int = 4, chip: str = "cpu", **columns: Any
) -> Cluster:
    """A cluster of nodes ``north-0``, ``north-1`` … that has reported its cards."""
    row = fleet.cluster_ensure(name=name, kind=columns.pop("kind", "local"))
    Cluster.objects.filter(pk=row.pk).update(**{"last_seen_at": NOON, **columns})
    seen = [
        ObservedNode(
            name=f"{name}-{number}",
            cards=tuple(
                ObservedCard(index=index, chip=chip, serial=f"{number}-{index}")
                for index in range(cards)
            ),
            capacity=Resources(cpu=Millicpu(64_000), memory=Bytes(256 << 30)),
        )
        for number in range(nodes)
    ]
    fleet.inventory_record(cluster=row, nodes=seen, isolation="own uid", at=NOON)
    row.refresh_from_db()
    return row


def sign(cluster: Cluster, *, seconds: float = 0, **given: Any) -> FaultSignal:
    """That the second card of the first node must be isolated, so many seconds past noon."""
    defaults: dict[str, Any] = {
        "origin": SignalOrigin.EXPORTER,
        "cluster": cluster.uid,
        "node": f"{cluster.name}-0",
        "index": 1,
        "code": "79",
        "level": FaultLevel.ISOLATE,
        "at": NOON + timedelta(seconds=seconds),
        "vendor": "nvidia",
    }
    return FaultSignal(**{**defaults, **given})


def card(cluster: Cluster, node: int = 0, index: int = 1) -> Card:
    return Card.objects.get(node__cluster=cluster, node__name=f"{cluster.name}-{node}", index=index)


def seconds_later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)
