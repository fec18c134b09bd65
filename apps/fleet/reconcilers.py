"""Reconcile the inventory of clusters, and the objects that isolate teams on them."""

from __future__ import annotations

import logging
from datetime import datetime

from apps.fleet import selectors, services
from apps.fleet.models import Cluster
from controlplane.ports.adapter_registry import AdapterNotFound
from controlplane.ports.clusters import ClusterError, TeamIsolatingCluster

log = logging.getLogger(__name__)


def inventories_sync(*, at: datetime, uid: str | None = None) -> int:
    """Record the inventory of every cluster, or of one; return how many answered. Failures are per cluster."""
    answered = 0
    clusters = Cluster.objects.all()
    for cluster in clusters if uid is None else clusters.filter(uid=uid):
        try:
            adapter = selectors.cluster_adapter(cluster)
            nodes = adapter.inventory()
            services.inventory_record(
                cluster=cluster, nodes=nodes, isolation=adapter.isolation(), at=at
            )
        except (ClusterError, AdapterNotFound) as error:
            log.warning("a cluster does not answer", extra={"cluster": cluster.name})
            services.cluster_error_record(cluster=cluster, error=str(error))
        except Exception as error:
            log.exception("a cluster could not be looked at", extra={"cluster": cluster.name})
            services.cluster_error_record(cluster=cluster, error=f"{type(error).__name__}: {error}")
        else:
            answered += 1
    return answered


def workload_isolation_reconcile() -> int:
    """Bring the objects that separate teams up to date on every cluster that has some; return how many have."""
    reconciled = 0
    for cluster in Cluster.objects.filter(kind__in=selectors.REMOTE_KINDS):
        try:
            adapter = selectors.cluster_adapter(cluster)
            if isinstance(adapter, TeamIsolatingCluster):
                adapter.reconcile_isolation()
                reconciled += 1
        except (ClusterError, AdapterNotFound) as error:
            log.warning(
                "the isolation of teams could not be brought up to date",
                extra={"cluster": cluster.name, "error": str(error)},
            )
    return reconciled
