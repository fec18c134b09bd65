"""What is said of a cluster whose copy of our queues could not be brought up to date."""

from __future__ import annotations

from django.db.models import Q

from apps.fleet.models import Cluster


def _told(reason: str) -> str:
    return f"its copy of our queues is out of date: {reason}"


#: What such trouble begins with: looking at the cluster's nodes neither finds it nor ends it.
STALE = _told("")
_OURS = Q(trouble__startswith=STALE)


def copy_stale(*, cluster: Cluster, reason: str) -> None:
    """Say why, unless the cluster is in trouble of another kind."""
    rows = Cluster.objects.filter(Q(trouble="") | _OURS, pk=cluster.pk)
    rows.update(trouble=_told(reason))


def copy_fresh(*, cluster: Cluster) -> None:
    """That trouble is over; any other stays."""
    Cluster.objects.filter(_OURS, pk=cluster.pk).update(trouble="")
