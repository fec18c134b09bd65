"""A rollout that is on its way over the nodes of a cluster."""

from __future__ import annotations

from datetime import datetime

from apps.accounts.models import User
from apps.fleet.models import Cluster
from apps.monitoring.models import Rollout
from apps.monitoring.services.maintenance_rollouts import (
    maintenance_rollout_begin,
)


def rollout_over(cluster: Cluster, *, actor: User, at: datetime) -> Rollout:
    """Every usable node of it waits to be burned in; none is taken out yet."""
    rollout = Rollout(name="driver 580", cluster=cluster, parallel=2)
    maintenance_rollout_begin(rollout=rollout, actor=actor, at=at)
    return rollout
