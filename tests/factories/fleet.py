"""Clusters that have reported their cards."""

from __future__ import annotations

from django.utils import timezone

from apps.fleet import services as fleet
from apps.fleet.models import Cluster
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.ports.clusters import ObservedCard, ObservedNode


def cluster(*, cards: int = 2, name: str = "here", kind: str = "local") -> Cluster:
    """A cluster that has reported one node with that many cards of chip ``cpu``."""
    row = fleet.cluster_ensure(name=name, kind=kind)
    node = ObservedNode(
        name=f"{name}-1",
        cards=tuple(ObservedCard(index=index, chip="cpu") for index in range(cards)),
        capacity=Resources(cpu=Millicpu(8000), memory=Bytes(16 << 30)),
    )
    fleet.inventory_record(
        cluster=row, nodes=[node], isolation="own uid, scrubbed environment", at=timezone.now()
    )
    return row
