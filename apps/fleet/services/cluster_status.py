"""Status of the connection to a cluster, and the outbox messages about changes on it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from apps.fleet.models import Cluster
from controlplane.domain.common.reasons import Reason
from controlplane.outbox.messages import publish_message, publish_messages

#: The leader lease of the process that watches clusters.
LEASE = "fleet.watch-clusters"
UNRESPONSIVE = Reason(
    "cluster.watch.stale",
    "the watch connection to the cluster has had no heartbeat for a minute; "
    "workloads there continue, but their state is not updated",
)
#: Names in one message: the maximum that one task reconciles.
_NAMES = 100


@transaction.atomic
def launches_changed_publish(*, names: Collection[str]) -> None:
    """Publish that these Launches may have changed."""
    ordered = sorted(names)
    starts = range(0, len(ordered), _NAMES)
    publish_messages("launches.observed", ({"names": ordered[at : at + _NAMES]} for at in starts))


@transaction.atomic
def cluster_changed_publish(*, cluster: Cluster) -> None:
    """Publish that the nodes of the cluster or their free resources may have changed."""
    publish_message("cluster.changed", cluster_uid=cluster.uid)


def cluster_reachable_record(*, cluster: Cluster, at: datetime) -> None:
    """Record a heartbeat of the watch connection."""
    Cluster.objects.filter(pk=cluster.pk).update(reachable_at=at)


def cluster_unresponsive_record(*, cluster: Cluster) -> None:
    """Record a heartbeat timeout unless another error is recorded. Nothing is isolated or stopped."""
    Cluster.objects.filter(pk=cluster.pk, error="").update(error=UNRESPONSIVE)


#: Code of this error: an inventory neither sets nor clears it.
QUEUE_SYNC_FAILED = "cluster.queue_sync.failed"
_QUEUE_SYNC_ERROR = Q(error__code=QUEUE_SYNC_FAILED)


def queue_sync_failed(*, cluster: Cluster, reason: str) -> None:
    """Record why the queue sync failed, unless another error is recorded."""
    rows = Cluster.objects.filter(Q(error="") | _QUEUE_SYNC_ERROR, pk=cluster.pk)
    rows.update(
        error=Reason(
            "cluster.queue_sync.failed",
            "the queues on the cluster are out of date: {reason}",
            reason=reason,
        )
    )


def queue_sync_succeeded(*, cluster: Cluster) -> None:
    """Clear the error of the queue sync; any other stays."""
    Cluster.objects.filter(_QUEUE_SYNC_ERROR, pk=cluster.pk).update(error="")


def cluster_error_record(*, cluster: Cluster, error: str) -> None:
    """Record why the last inventory failed. An unreachable cluster isolates nothing by itself."""
    Cluster.objects.filter(pk=cluster.pk).update(error=error)
