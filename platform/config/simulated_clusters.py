"""Simulated clusters: registration, and reporting for their processes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings

from apps.fleet import selectors, services
from apps.fleet.models import Cluster
from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.adapters.clusters.simulated.progress_reports import (
    ProgressReporter,
    ReportReceiver,
)
from controlplane.ports.clusters import ClusterError

KIND = "simulated"


def ensure_simulated_cluster(
    name: str,
    *,
    fleet: Mapping[str, Any],
    speed: float = 1.0,
    hours: float = 1.6,
    failing: float = 0.06,
) -> Cluster:
    """Return the simulated cluster of that name, created if absent; options are those of ``SimulatedCluster``.

    :raises ClusterError: if the fleet description is invalid, or the name is that of a real cluster.
    """
    home = str(settings.NINEFOLD_HOME / KIND / name)
    # An invalid description is refused before a row is created.
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


def all_clusters() -> list[tuple[Cluster, SimulatedCluster]]:
    """Each with its adapter, by name."""
    found = []
    for row in Cluster.objects.filter(kind=KIND).order_by("name"):
        adapter = selectors.cluster_adapter(row)
        if isinstance(adapter, SimulatedCluster):
            found.append((row, adapter))
    return found


def cluster_named(name: str) -> SimulatedCluster:
    """:raises ClusterError: if no simulated cluster is called so."""
    known = {row.name: adapter for row, adapter in all_clusters()}
    if name not in known:
        names = ", ".join(known) or "none yet"
        raise ClusterError(f"no simulated cluster is called {name!r}; there are: {names}")
    return known[name]


def report_simulated_processes(*, listener: ReportReceiver, interval: timedelta, limit: int) -> int:
    """Report for the processes of every simulated cluster; return how many reports were sent.

    :raises ReceiverUnavailable: if the listener is unreachable.
    """
    return sum(
        ProgressReporter(adapter.records, listener=listener, every=interval).send_reports(
            at=adapter.now(), most=limit
        )
        for _, adapter in all_clusters()
    )
