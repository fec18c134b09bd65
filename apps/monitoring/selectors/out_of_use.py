"""Which nodes are out of use: the fleet asks before it opens a node, or removes a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from apps.fleet.models import Cluster, Node
from apps.monitoring.models import Isolation


@dataclass(frozen=True, slots=True)
class NodeIsolations:
    """Whole nodes; a single card leaves no mark on the cluster."""

    def isolated_since(self, node: Node) -> datetime | None:
        standing = Isolation.objects.filter(node=node, card=None, ended_at=None)
        return standing.values_list("began_at", flat=True).first()

    def nodes_marked_isolated(self, cluster: Cluster) -> Iterator[str]:
        bearing = Q(ended_at=None)
        if not cluster.trouble:
            # Where the cluster does not answer nobody can take marks off: that keeps nothing from removal.
            bearing |= Q(marked_node=True)
        whole = Isolation.objects.filter(bearing, card=None, node__cluster=cluster)
        yield from whole.order_by().values_list("node__name", flat=True).distinct()
