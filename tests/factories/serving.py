"""Deployments, their replicas, and API keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps.accounts.models import Team, User
from apps.fleet.models import Cluster, Node
from apps.models.models import ModelVersion
from apps.quotas.models import Queue
from apps.serving.models import ApiKey, Backend, Deployment, Replica, WeightDownload
from apps.serving.selectors.revision_configurations import RevisionConfiguration
from apps.serving.services import deployments
from apps.serving.services.gateways import api_key_create
from controlplane.domain.common.reasons import Reason
from controlplane.domain.serving.lifecycle import DeploymentEvent, ReplicaEvent
from tests.factories.jobs import schedule


def deployment(
    *, actor: User, team: Team, queue: Queue, model: ModelVersion, name: str = "parcels"
) -> Deployment:
    """A starting deployment without replicas."""
    return deployments.deployment_create(
        actor=actor,
        team=team,
        name=name,
        configuration=RevisionConfiguration(model_version=model),
        queue=queue,
    )


def replica(deployment: Deployment, *, cluster: Cluster, ready: bool = True) -> Replica:
    """A replica that is ready, or in back-off after a crash with the deployment degraded."""
    backend = Backend.objects.get(revision__deployment=deployment)
    row = deployments.replica_create(backend=backend, deployment=deployment)
    at = timezone.now()
    schedule(at=at)
    Replica.objects.filter(pk=row.pk).update(cluster=cluster, chip="cpu")
    row.refresh_from_db()
    deployments.replica_transition(row, ReplicaEvent.ADMIT, at=at, reason="given a card")
    deployments.replica_transition(row, ReplicaEvent.LAUNCH, at=at, reason="starting")
    if ready:
        deployments.replica_transition(
            row,
            ReplicaEvent.BECOME_READY,
            at=at,
            reason="ready",
            url="http://127.0.0.1:9",
            ready_at=at,
        )
        event, reason = DeploymentEvent.BECOME_READY, "1 of 1 replicas ready"
    else:
        deployments.replica_transition(
            row,
            ReplicaEvent.CRASH,
            at=at,
            reason="ended with exit code 1; starts again",
            crashes=3,
            restart_at=at + timedelta(seconds=40),
            log_tail="Traceback: out of memory",
        )
        event, reason = DeploymentEvent.DEGRADE, "0 of 1 replicas ready"
    deployment.refresh_from_db()
    deployments.deployment_transition(deployment, event, at=at, reason=reason)
    return row


def api_key(*, actor: User, team: Team, name: str = "batch labels") -> tuple[ApiKey, str]:
    return api_key_create(actor=actor, team=team, name=name, at=timezone.now())


def weight_download(
    *, actor: User, team: Team, model: ModelVersion, cluster: Cluster, **changes: Any
) -> WeightDownload:
    """A pending download to the first node of the cluster."""
    size = model.artifact.size if model.artifact is not None else 0
    return WeightDownload.objects.create(
        **{
            "created_by": actor,
            "team": team,
            "model_version": model,
            "node": Node.objects.filter(cluster=cluster).order_by("name")[0],
            "size": size,
            "message": Reason("launch.state.starting", "starting"),
            **changes,
        }
    )
