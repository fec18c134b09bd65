"""The life of replicas: launch, watch, restart with back-off, stop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from django.db import transaction

from apps.fleet import selectors as fleet
from apps.models import selectors as registry_selectors
from apps.quotas import selectors as quotas_selectors
from apps.quotas import services as quotas
from apps.quotas.models import Claim
from apps.serving import selectors
from apps.serving.models import Replica
from apps.serving.services import deployments as services
from controlplane.domain.claims import ClaimState, GangShape, ReleaseReason
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.serving import (
    FORGIVEN_AFTER,
    ReplicaEvent,
    ReplicaState,
    backoff,
)
from controlplane.persistence.leases import lease_rows, release_row
from controlplane.persistence.moves import LeaseLost
from controlplane.ports import registry
from controlplane.ports.artifacts import ArtifactError
from controlplane.ports.clusters import (
    Cluster,
    ClusterUnavailable,
    LaunchRefused,
    ObservedLaunch,
    Phase,
)
from controlplane.ports.engines import ROLES, RenderRequest, Task
from controlplane.ports.launches import Launch

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
BATCH = 64
#: What people are told where a turn met what it was not made for.
FAULT = "a fault of ours keeps it from going on; it is tried again, and the worker's log says more"
GRACE = timedelta(seconds=20)
PORT = "http"
TAIL_BYTES = 4 * 1024


def replicas_reconcile(*, at: datetime, uid: str | None = None) -> int:
    """One turn for each live replica; say how many were looked at."""
    rows = Replica.objects.filter(state__in=selectors.LIVE_REPLICAS)
    if uid is not None:
        rows = rows.filter(uid=uid)
    rows = rows.select_related(
        "backend__revision__deployment__team", "backend__revision__model_version__artifact"
    )
    leased = lease_rows(rows, limit=BATCH, ttl=LEASE)
    # Cluster → what was said when it did not answer: nobody waits for it a second time in this turn.
    silent: dict[int, str] = {}
    for replica in leased:
        try:
            if replica.cluster_id in silent:
                _note(replica, silent[replica.cluster_id])
                continue
            TURNS[ReplicaState(replica.state)](replica, at)
        except (IllegalTransition, LeaseLost) as race:
            # Its deployment stopped it meanwhile, or another worker took over.
            log.info("a turn gave way", extra={"replica": replica.uid, "race": str(race)})
        except ClusterUnavailable as error:
            message = f"the cluster does not answer: {error}"
            if replica.cluster_id is not None:
                silent[replica.cluster_id] = message
            _note(replica, message)
        except Exception:
            log.exception("a turn failed", extra={"replica": replica.uid, "state": replica.state})
            _note(replica, FAULT)
        finally:
            release_row(replica)
    return len(leased)


def _note(replica: Replica, message: str) -> None:
    if replica.message != message:
        Replica.objects.filter(pk=replica.pk, lease_token=replica.lease_token).update(
            message=message
        )


def _adapter(replica: Replica) -> Cluster:
    """:raises ValueError: if the replica has not been admitted to a cluster."""
    if replica.cluster is None:
        raise ValueError(f"replica {replica.uid} is on no cluster yet")
    return fleet.cluster_adapter(replica.cluster)


def _observe(replica: Replica) -> ObservedLaunch | None:
    return _adapter(replica).observe([replica.launch_name]).get(replica.launch_name)


def _turn_pending(replica: Replica, at: datetime) -> None:
    claim = Claim.objects.get(uid=replica.claim_uid)
    if _revoked(replica, at):
        return
    if claim.state != ClaimState.ADMITTED:
        _note(replica, claim.explanation)
        return
    services.replica_move(
        replica,
        ReplicaEvent.ADMIT,
        at=at,
        reason=claim.explanation,
        chip=claim.chip,
        cluster=quotas_selectors.cluster_of(claim),
    )
    _turn_admitted(replica, at)


def _turn_admitted(replica: Replica, at: datetime) -> None:
    if _revoked(replica, at):
        return
    try:
        _adapter(replica).launch(_render(replica))
    except (LaunchRefused, ArtifactError, ValueError) as refusal:
        _crash(replica, at, reason=f"could not be started: {refusal}")
        return
    services.replica_move(replica, ReplicaEvent.LAUNCH, at=at, reason="starting")


def _render(replica: Replica) -> Launch:
    """The Launch of this generation of the replica. Rendering twice gives the same one."""
    revision = replica.backend.revision
    claim = Claim.objects.select_related("queue").get(uid=replica.claim_uid)
    artifact = revision.model_version.artifact
    if artifact is None:
        raise ValueError(f"{revision.model_version} has no files")
    launch = registry.engine(revision.engine).render(
        RenderRequest(
            task=Task.SERVE,
            name=replica.launch_name,
            spec={**revision.spec, "model_name": revision.deployment.name},
            chip=registry.chips()[claim.chip],
            placements=quotas_selectors.placements_of(claim),
            inputs=(registry_selectors.input_tree("model", artifact),),
            model=registry_selectors.model_facts(revision.model_version),
            token=selectors.engine_key(replica),
            labels={
                "team": revision.deployment.team.slug,
                "kind": selectors.OWNER_KIND,
                "uid": replica.uid,
                **quotas_selectors.launch_labels(claim),
            },
        )
    )
    return launch.limited(GangShape.from_json(claim.shape).limits, run_within=None)


def _turn_running(replica: Replica, at: datetime) -> None:
    if _revoked(replica, at):
        return
    observed = _observe(replica)
    if observed is None:
        _crash(replica, at, reason="the cluster no longer knows it")
    elif observed.ended:
        end = observed.replicas[0]
        _crash(replica, at, reason=end.message or f"ended with exit code {end.exit_code}")
    elif replica.state == ReplicaState.STARTING:
        _follow_start(replica, observed, at)


def _follow_start(replica: Replica, observed: ObservedLaunch, at: datetime) -> None:
    if any(one.phase is not Phase.RUNNING for one in observed.replicas):
        _note(replica, observed.replicas[0].message or "starting")
        return
    endpoint = _adapter(replica).endpoint(
        replica.launch_name, role=ROLES[Task.SERVE], index=0, port=PORT
    )
    if endpoint is not None:
        services.replica_move(
            replica,
            ReplicaEvent.BECOME_READY,
            at=at,
            reason="ready",
            url=endpoint.url,
            ready_at=at,
        )


def _crash(replica: Replica, at: datetime, *, reason: str) -> None:
    """Remember how it ended and when to try again."""
    well = replica.ready_at is not None and at - replica.ready_at > FORGIVEN_AFTER
    crashes = 1 if well else replica.crashes + 1
    wait = backoff(crashes=crashes)
    services.replica_move(
        replica,
        ReplicaEvent.CRASH,
        at=at,
        reason=f"{reason}; restarts in {wait.total_seconds():.0f} s (crash {crashes} in a row)",
        crashes=crashes,
        restart_at=at + wait,
        ready_at=None,
        url="",
        log_tail=_tail(replica),
    )


def _tail(replica: Replica) -> str:
    chunk = _adapter(replica).log(
        replica.launch_name,
        role=ROLES[Task.SERVE],
        index=0,
        offset=-TAIL_BYTES,
        limit=TAIL_BYTES,
    )
    return chunk.content.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _turn_backoff(replica: Replica, at: datetime) -> None:
    if _revoked(replica, at) or (replica.restart_at is not None and at < replica.restart_at):
        return
    _adapter(replica).remove(replica.launch_name)
    services.replica_move(
        replica,
        ReplicaEvent.RESTART,
        at=at,
        reason="restarting",
        generation=replica.generation + 1,
        restart_at=None,
    )
    _turn_admitted(replica, at)


def _revoked(replica: Replica, at: datetime) -> bool:
    """Begin to stop it if its cards are taken back; say whether."""
    claim = Claim.objects.get(uid=replica.claim_uid)
    if claim.state != ClaimState.REVOKING:
        return False
    services.replica_move(
        replica,
        ReplicaEvent.STOP,
        at=at,
        reason=f"its cards are taken back ({claim.release_reason})",
        stop_reason=claim.release_reason,
    )
    _turn_stopping(replica, at)
    return True


def _turn_stopping(replica: Replica, at: datetime) -> None:
    if replica.cluster is not None:
        adapter = _adapter(replica)
        adapter.stop(replica.launch_name, grace=GRACE)
        observed = _observe(replica)
        if observed is not None and not observed.ended:
            return
        adapter.remove(replica.launch_name)
    reason = ReleaseReason(replica.stop_reason or ReleaseReason.FINISHED)
    with transaction.atomic():
        services.replica_move(replica, ReplicaEvent.CONFIRM, at=at, reason="stopped", url="")
        quotas.claim_release(uid=replica.claim_uid, reason=reason, at=at)


TURNS: Mapping[ReplicaState, Callable[[Replica, datetime], None]] = {
    ReplicaState.PENDING: _turn_pending,
    ReplicaState.ADMITTED: _turn_admitted,
    ReplicaState.STARTING: _turn_running,
    ReplicaState.READY: _turn_running,
    ReplicaState.BACKOFF: _turn_backoff,
    ReplicaState.STOPPING: _turn_stopping,
}
