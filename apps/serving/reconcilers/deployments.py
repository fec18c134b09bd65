"""Deployments: enough replicas of the newest revision, traffic to those that are ready."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from apps.serving import selectors
from apps.serving.models import Backend, Deployment, Replica
from apps.serving.services import deployments as services
from controlplane.domain.claims import ReleaseReason
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.serving import (
    DEPLOYMENT,
    DeploymentEvent,
    DeploymentState,
    ReplicaState,
)
from controlplane.persistence.leases import lease_rows, release_row
from controlplane.persistence.moves import LeaseLost

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
BATCH = 32


def deployments_reconcile(*, at: datetime, uid: str | None = None) -> int:
    """One turn for each deployment that is not stopped; say how many were looked at."""
    rows = Deployment.objects.exclude(state=DeploymentState.STOPPED).select_related("team", "queue")
    if uid is not None:
        rows = rows.filter(uid=uid)
    leased = lease_rows(rows, limit=BATCH, ttl=LEASE)
    for deployment in leased:
        try:
            _turn(deployment, at)
        except (IllegalTransition, LeaseLost) as race:
            # Somebody changed it meanwhile; the next turn sees the new state.
            log.info("a turn gave way", extra={"deployment": deployment.uid, "race": str(race)})
        except Exception:
            log.exception("a turn failed", extra={"deployment": deployment.uid})
        finally:
            release_row(deployment)
    return len(leased)


def _turn(deployment: Deployment, at: datetime) -> None:
    live = list(selectors.live_replicas(deployment))
    if deployment.state == DeploymentState.STOPPING:
        _wind_down(deployment, live, at)
        return
    backend = selectors.newest_revision(deployment).backends.order_by("-id")[0]
    current = [replica for replica in live if replica.backend_id == backend.pk]
    older = [replica for replica in live if replica.backend_id != backend.pk]
    _level(deployment, backend, current, at)
    if older:
        _clear(deployment, backend, older, at)
    ready = [replica for replica in current if replica.state == ReplicaState.READY]
    if len(ready) >= deployment.replica_count:
        services.traffic_move(deployment=deployment, backend=backend)
        services.replicas_stop(
            replicas=older,
            reason=ReleaseReason.FINISHED,
            why=f"revision {backend.revision.number} serves now",
            at=at,
        )
    _tell_state(deployment, current, len(ready), at)


def _wind_down(deployment: Deployment, live: list[Replica], at: datetime) -> None:
    if live:
        services.replicas_stop(
            replicas=live, reason=ReleaseReason.FINISHED, why="the deployment stops", at=at
        )
    else:
        services.deployment_move(
            deployment, DeploymentEvent.CONFIRM, at=at, reason="nothing of it runs any more"
        )


def _level(deployment: Deployment, backend: Backend, current: list[Replica], at: datetime) -> None:
    """As many replicas as wanted: more are created, the youngest too many are stopped."""
    staying = [replica for replica in current if replica.state != ReplicaState.STOPPING]
    missing = deployment.replica_count - len(staying)
    if missing > 0:
        services.replicas_add(backend=backend, deployment=deployment, count=missing)
    elif missing < 0:
        services.replicas_stop(
            replicas=staying[missing:],
            reason=ReleaseReason.FINISHED,
            why="the deployment was scaled down",
            at=at,
        )


def _clear(deployment: Deployment, backend: Backend, older: list[Replica], at: datetime) -> None:
    """Replicas of a revision that was replaced before it served hold cards that the newest may want."""
    serving = selectors.backends_serving(deployment)
    services.replicas_stop(
        replicas=[replica for replica in older if replica.backend_id not in serving],
        reason=ReleaseReason.FINISHED,
        why=f"revision {backend.revision.number} takes its place",
        at=at,
    )


def _tell_state(deployment: Deployment, current: list[Replica], ready: int, at: datetime) -> None:
    """The deployment's own state follows from its replicas."""
    state = DeploymentState(deployment.state)
    wanted = deployment.replica_count
    broken = [replica for replica in current if replica.state == ReplicaState.BACKOFF]
    if ready >= wanted:
        event, reason = DeploymentEvent.BECOME_READY, f"{ready} of {wanted} replicas are ready"
    elif broken:
        event = DeploymentEvent.DEGRADE
        reason = f"{ready} of {wanted} replicas are ready; {broken[0].message}"
    elif state is DeploymentState.READY:
        event, reason = DeploymentEvent.DEGRADE, f"{ready} of {wanted} replicas are ready"
    else:
        return
    if DEPLOYMENT.allows(state, event):
        services.deployment_move(deployment, event, at=at, reason=reason)
