"""Clusters that schedule by themselves are told our queues, our priorities and how their nodes stand."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.fleet.services import copies
from apps.quotas.models import PriorityClass
from apps.quotas.selectors.trees import tree_documents
from controlplane.domain.queue_documents import Documents
from controlplane.persistence.leases import loop_lease
from controlplane.ports.clusters import ClusterError, QueueKeeper
from controlplane.ports.registry import UnknownAdapter

log = logging.getLogger(__name__)

LEASE = "quotas.copies"
#: Longer than one cluster takes. Where it is not, two turns do the same, and the next puts right what they mixed.
LEASE_TTL = timedelta(minutes=5)


def copies_keep() -> int:
    """Bring every copy of our queues up to date, unless somebody else does; say how many are.

    A cluster that does not answer spoils no other. Call it outside of transactions: it waits for clusters.
    """
    keepers = _keepers()
    if not keepers:
        return 0
    kept = 0
    with loop_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        documents = tree_documents()
        classes = dict(PriorityClass.objects.values_list("name", "value"))
        for cluster, keeper in keepers:
            if not lease.renew(ttl=LEASE_TTL):
                break
            kept += _keep(cluster, keeper, documents=documents, classes=classes)
    return kept


def _keepers() -> list[tuple[Cluster, QueueKeeper]]:
    """Adapters are made for clusters over the network only: of the others none keeps a copy."""
    found: list[tuple[Cluster, QueueKeeper]] = []
    for cluster in Cluster.objects.filter(kind__in=fleet.REMOTE_KINDS):
        try:
            adapter = fleet.cluster_adapter(cluster)
        except (ClusterError, UnknownAdapter):
            # Whoever takes stock of it says why.
            continue
        if isinstance(adapter, QueueKeeper):
            found.append((cluster, adapter))
    return found


def _keep(
    cluster: Cluster, keeper: QueueKeeper, *, documents: Documents, classes: Mapping[str, int]
) -> bool:
    """One cluster's copy; says whether it is up to date as far as that cluster can have it."""
    try:
        findings = keeper.keep_queues(documents)
        keeper.keep_priorities(classes)
        keeper.keep_topology()
    except ClusterError as error:
        log.warning(
            "a cluster's copy of the queues is out of date",
            extra={"cluster": cluster.name, "error": str(error)},
        )
        copies.copy_stale(cluster=cluster, reason=str(error))
        return False
    except Exception as error:
        log.exception("a cluster's queues could not be kept", extra={"cluster": cluster.name})
        copies.copy_stale(cluster=cluster, reason=f"{type(error).__name__}: {error}")
        return False
    for finding in findings:
        log.warning(
            "a cluster does not keep a queue as it is stated",
            extra={"cluster": cluster.name, "queue": finding.field, "finding": finding.message},
        )
    copies.copy_fresh(cluster=cluster)
    return True
