"""Queries on maintenance rollouts."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from apps.accounts.selectors import RequestUser
from apps.fleet.selectors import is_fleet_operator
from apps.monitoring.models import Rollout, RolloutNode
from controlplane.domain.health.maintenance_rollouts import UNDER_WAY, NodeState


def rollouts_visible(user: RequestUser) -> QuerySet[Rollout]:
    """All rollouts, for operators of the fleet; with ``total`` and ``finished`` nodes, newest first."""
    rows = Rollout.objects.all() if is_fleet_operator(user) else Rollout.objects.none()
    return (
        rows.select_related("cluster", "created_by")
        .annotate(
            total=Count("nodes"), finished=Count("nodes", filter=Q(nodes__state=NodeState.DONE))
        )
        .order_by("-id")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceRolloutBatch:
    """The nodes of one failure domain, and how far they are."""

    domain: str
    nodes: tuple[RolloutNode, ...]

    @property
    def done(self) -> int:
        return sum(row.state == NodeState.DONE for row in self.nodes)

    @property
    def state(self) -> str:
        """That of the node that is farthest from well."""
        states = {NodeState(row.state) for row in self.nodes}
        if NodeState.FAILED in states:
            return NodeState.FAILED
        if states & UNDER_WAY or len(states) > 1:
            return "under_way"
        return next(iter(states), NodeState.WAITING)


def rollout_batches(rollout: Rollout) -> tuple[MaintenanceRolloutBatch, ...]:
    """In the order in which they are worked on."""
    batches: dict[str, list[RolloutNode]] = {}
    rows = rollout.nodes.select_related("node__cluster", "isolation").order_by("id")
    for row in rows:
        batches.setdefault(row.domain, []).append(row)
    return tuple(
        MaintenanceRolloutBatch(domain=domain, nodes=tuple(nodes))
        for domain, nodes in batches.items()
    )
