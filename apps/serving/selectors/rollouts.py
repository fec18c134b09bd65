"""The status of a deployment's rollout."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from apps.serving.models import Deployment, Replica, Revision
from apps.serving.selectors.deployments import (
    LIVE_REPLICAS,
    failed_rollout,
    newest_revision,
    routed_revision,
)
from controlplane.domain.serving.lifecycle import DeploymentState, ReplicaState
from controlplane.domain.serving.rollouts import RolloutLimits, RolloutPhase, rollout_phase

#: Code of the failure reason of a revision whose rollout a user undid.
ROLLOUT_UNDONE = "rollout.undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutStatus:
    """Where the rollout is, and how many replicas each side has."""

    phase: RolloutPhase
    #: The revision that the deployment should have.
    revision: Revision
    #: The revision that its route has.
    serving: Revision
    #: The newest revision if it failed or was undone.
    given_up: Revision | None
    paused_at: datetime | None
    replicas: int
    #: Live replicas of the wanted revision.
    updated: int
    updated_ready: int
    #: Live replicas of other revisions.
    old: int
    old_ready: int
    limits: RolloutLimits

    @property
    def in_progress(self) -> bool:
        return self.revision != self.serving


def rollout_status(deployment: Deployment) -> RolloutStatus:
    """The status of the rollout of a deployment."""
    revision, serving = newest_revision(deployment), routed_revision(deployment)
    counted = (
        Replica.objects.filter(backend__revision__deployment=deployment, state__in=LIVE_REPLICAS)
        .order_by()
        .values_list("backend__revision", "state")
        .annotate(amount=Count("id"))
    )
    live: Counter[bool] = Counter()
    ready: Counter[bool] = Counter()
    for key, state, amount in counted:
        live[key == revision.pk] += amount
        if state == ReplicaState.READY:
            ready[key == revision.pk] += amount
    given_up = failed_rollout(deployment)
    settled = deployment.state == DeploymentState.STOPPED or (
        ready[True] == live[True] == deployment.replica_count and not live[False]
    )
    return RolloutStatus(
        phase=rollout_phase(
            in_progress=revision != serving,
            settled=settled,
            paused=deployment.paused_at is not None,
            given_up=given_up is not None,
        ),
        revision=revision,
        serving=serving,
        given_up=given_up,
        paused_at=deployment.paused_at,
        replicas=deployment.replica_count,
        updated=live[True],
        updated_ready=ready[True],
        old=live[False],
        old_ready=ready[False],
        limits=deployment.strategy.limits(replicas=deployment.replica_count),
    )
