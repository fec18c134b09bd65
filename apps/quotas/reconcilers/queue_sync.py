"""Syncs queues, priority classes and topology to clusters with their own scheduler."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.fleet.services import clusters
from apps.quotas.models import PriorityClass
from apps.quotas.selectors.queue_trees import queue_tree_documents
from controlplane.domain.quotas.queue_documents import Documents
from controlplane.persistence.leases import hold_leader_lease
from controlplane.ports.adapter_registry import AdapterNotFound
from controlplane.ports.clusters import ClusterError, QueueSyncingCluster

log = logging.getLogger(__name__)

LEASE = "quotas.copies"
#: Longer than the sync of one cluster. If it is not, two runs overlap, and the next one corrects the result.
LEASE_TTL = timedelta(minutes=5)


def cluster_queues_sync() -> int:
    """Sync all clusters, unless another process does; return the number of clusters that are up to date.

    An unreachable cluster does not affect others. Call it outside of transactions: it makes network requests.
    """
    nominees = _clusters_with_queue_sync()
    if not nominees:
        return 0
    synced = 0
    with hold_leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        documents = queue_tree_documents()
        classes = dict(PriorityClass.objects.values_list("name", "value"))
        for cluster, keeper in nominees:
            if not lease.renew(ttl=LEASE_TTL):
                break
            synced += _sync_queues_to_cluster(cluster, keeper, documents=documents, classes=classes)
    return synced


def _clusters_with_queue_sync() -> list[tuple[Cluster, QueueSyncingCluster]]:
    """Remote clusters whose adapter syncs queues; local ones have no copy of the queues."""
    found: list[tuple[Cluster, QueueSyncingCluster]] = []
    for cluster in Cluster.objects.filter(kind__in=fleet.REMOTE_KINDS):
        try:
            adapter = fleet.cluster_adapter(cluster)
        except (ClusterError, AdapterNotFound):
            # The inventory reports the error.
            continue
        if isinstance(adapter, QueueSyncingCluster):
            found.append((cluster, adapter))
    return found


def _sync_queues_to_cluster(
    cluster: Cluster,
    keeper: QueueSyncingCluster,
    *,
    documents: Documents,
    classes: Mapping[str, int],
) -> bool:
    """Sync one cluster; return whether it is up to date, as far as that cluster supports it."""
    try:
        findings = keeper.sync_queues(documents)
        keeper.sync_priority_classes(classes)
        keeper.sync_topology()
    except ClusterError as error:
        log.warning(
            "a cluster's copy of the queues is out of date",
            extra={"cluster": cluster.name, "error": str(error)},
        )
        clusters.queue_sync_failed(cluster=cluster, reason=str(error))
        return False
    except Exception as error:
        log.exception("a cluster's queues could not be kept", extra={"cluster": cluster.name})
        clusters.queue_sync_failed(cluster=cluster, reason=f"{type(error).__name__}: {error}")
        return False
    for finding in findings:
        log.warning(
            "a cluster does not keep a queue as it is stated",
            extra={"cluster": cluster.name, "queue": finding.field, "finding": finding.message},
        )
    clusters.queue_sync_succeeded(cluster=cluster)
    return True
