"""Tidy the clusters: what should not serve any more."""

from __future__ import annotations

import logging
from datetime import timedelta

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.serving.models import Replica
from controlplane.domain.serving import ReplicaState
from controlplane.ports.clusters import Cluster as ClusterAdapter
from controlplane.ports.clusters import ClusterError
from controlplane.ports.registry import UnknownAdapter

log = logging.getLogger(__name__)

PREFIX = "replica-"


def launches_sweep() -> int:
    """Stop and remove what no live replica owns; say how many Launches were touched.

    A worker so slow that it lost its lease may have launched a replica that had been stopped, or
    restarted, meanwhile: this finds it.
    """
    touched = 0
    for cluster in Cluster.objects.all():
        try:
            touched += _sweep(cluster, fleet.cluster_adapter(cluster))
        except (ClusterError, UnknownAdapter) as error:
            log.warning("a sweep failed", extra={"cluster": cluster.name, "error": str(error)})
    return touched


def _sweep(cluster: Cluster, adapter: ClusterAdapter) -> int:
    uids = {
        name: name.removeprefix(PREFIX).rpartition("-")[0]
        for name in adapter.names()
        if name.startswith(PREFIX)
    }
    # What belongs to no replica of ours may be another control plane's.
    known = {
        replica.uid: replica
        for replica in Replica.objects.filter(cluster=cluster, uid__in=uids.values())
    }
    observed = adapter.observe(uids)
    touched = 0
    for name, uid in uids.items():
        replica = known.get(uid)
        if replica is None or _owns(replica, name):
            continue
        launch = observed.get(name)
        if launch is not None and not launch.ended:
            log.warning("something served that had been stopped", extra={"replica": uid})
            adapter.stop(name, grace=timedelta())
        else:
            adapter.remove(name)
        touched += 1
    return touched


def _owns(replica: Replica, name: str) -> bool:
    """Later generations than the row's are of a turn that is being made right now."""
    if replica.state == ReplicaState.STOPPED:
        return False
    return int(name.rpartition("-")[2]) >= replica.generation
