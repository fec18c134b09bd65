"""The simulated clusters of this product: registering them, and giving their processes a voice."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings

from apps.fleet import selectors, services
from apps.fleet.models import Cluster
from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.adapters.clusters.simulated.reporting import Listener, Voice
from controlplane.ports.clusters import ClusterError

KIND = "simulated"


def ensure(
    name: str,
    *,
    fleet: Mapping[str, Any],
    speed: float = 1.0,
    hours: float = 1.6,
    failing: float = 0.06,
) -> Cluster:
    """The simulated cluster of that name, made if absent; the rest is as ``SimulatedCluster`` takes it.

    :raises ClusterError: if the description makes no fleet, or the name is that of a real cluster.
    """
    home = str(settings.NINEFOLD_HOME / KIND / name)
    # What makes no fleet is refused before there is a row of it.
    SimulatedCluster(home, fleet=fleet, speed=speed, hours=hours, failing=failing)
    row = services.cluster_ensure(name=name, kind=KIND)
    if row.kind != KIND:
        raise ClusterError(f"{name} is a cluster of kind {row.kind}; choose another name")
    if not row.options:
        row.options = {
            "home": home,
            "fleet": fleet,
            "speed": speed,
            "hours": hours,
            "failing": failing,
        }
        row.save(update_fields=["options"])
    return row


def every() -> list[tuple[Cluster, SimulatedCluster]]:
    """Each with its adapter, by name."""
    found = []
    for row in Cluster.objects.filter(kind=KIND).order_by("name"):
        adapter = selectors.cluster_adapter(row)
        if isinstance(adapter, SimulatedCluster):
            found.append((row, adapter))
    return found


def named(name: str) -> SimulatedCluster:
    """:raises ClusterError: if no simulated cluster is called so."""
    known = {row.name: adapter for row, adapter in every()}
    if name not in known:
        names = ", ".join(known) or "none yet"
        raise ClusterError(f"no simulated cluster is called {name!r}; there are: {names}")
    return known[name]


def speak(*, listener: Listener, every_so_often: timedelta, most: int) -> int:
    """One turn of the voice of every simulated cluster; say how many processes were spoken for.

    :raises controlplane.adapters.clusters.simulated.reporting.Away: if nobody hears now.
    """
    return sum(
        Voice(adapter.records, listener=listener, every=every_so_often).speak(
            at=adapter.now(), most=most
        )
        for _, adapter in every()
    )
