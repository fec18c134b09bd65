"""What the process that watches clusters says to the others: as news, and in the cluster's row."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from apps.fleet.models import Cluster
from controlplane.outbox.messages import publish, publish_each

#: Held by the one process that follows the clusters.
LEASE = "fleet.watch-clusters"
SILENT = (
    "the connection that watches it has been silent for a minute: what runs there goes on unseen"
)
#: Names in one piece of news: a task takes so many turns at most.
_NAMES = 100


@transaction.atomic
def launches_tell(*, names: Collection[str]) -> None:
    """Say that these Launches may have changed, to whoever owns them."""
    ordered = sorted(names)
    starts = range(0, len(ordered), _NAMES)
    publish_each("launches.observed", ({"names": ordered[at : at + _NAMES]} for at in starts))


@transaction.atomic
def cluster_tell(*, cluster: Cluster) -> None:
    """Say that its nodes or what they have left may have changed."""
    publish("cluster.changed", cluster_uid=cluster.uid)


def cluster_reached(*, cluster: Cluster, at: datetime) -> None:
    """Remember that the connection which watches it has proved itself."""
    Cluster.objects.filter(pk=cluster.pk).update(reachable_at=at)


def cluster_silent(*, cluster: Cluster) -> None:
    """Say that it does not answer, unless something better is known. It isolates nothing and stops nothing."""
    Cluster.objects.filter(pk=cluster.pk, trouble="").update(trouble=SILENT)
