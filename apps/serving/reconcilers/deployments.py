"""Controllers of deployments and of their replicas, and clean-up of the Launches of serving."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from functools import cache, partial
from math import inf

from django.conf import settings
from django.db import transaction

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.models import selectors as registry_selectors
from apps.quotas import selectors as quotas_selectors
from apps.quotas import services as quotas
from apps.quotas.models import Claim
from apps.serving import selectors
from apps.serving.models import Backend, Deployment, Replica, Revision
from apps.serving.reconcilers.weight_downloads import weight_launches_cleanup
from apps.serving.services import deployments as services
from apps.serving.services import gateways
from apps.serving.services import weight_downloads as weights
from controlplane.domain.common.reasons import Reason, ReasonedValueError
from controlplane.domain.quotas.claims import ClaimState, GangShape, ReleaseReason
from controlplane.domain.serving.lifecycle import (
    BACKOFF_RESET_AFTER,
    DEPLOYMENT,
    EVICTION_GRACE,
    STOP_GRACE,
    DeploymentEvent,
    DeploymentState,
    ReplicaEvent,
    ReplicaState,
    restart_backoff,
)
from controlplane.domain.serving.rollouts import (
    RevisionReplica,
    RolloutActions,
    plan_rollout,
    rollout_failure,
)
from controlplane.persistence.leases import reconcile_rows
from controlplane.ports import adapter_registry
from controlplane.ports.adapter_registry import AdapterNotFound
from controlplane.ports.artifacts import ArtifactError, StorageUnavailable
from controlplane.ports.clusters import (
    ClusterAdapter,
    ClusterError,
    ClusterUnavailable,
    ExitCause,
    LaunchRefused,
    ObservedLaunch,
    ReplicaPhase,
)
from controlplane.ports.engines import ROLES, EngineTask, RenderRequest, ServedAdapter
from controlplane.ports.launches import UNREADY, Launch

log = logging.getLogger(__name__)

DEPLOYMENT_LEASE = timedelta(seconds=60)
DEPLOYMENT_BATCH = 32
REPLICA_LEASE = timedelta(seconds=60)
REPLICA_BATCH = 64
#: Gateways that do not confirm a snapshot without a draining replica delay its stop for this long.
SNAPSHOT_CONFIRMED_WITHIN = timedelta(seconds=60)
HTTP_PORT_NAME = "http"
LOG_TAIL_BYTES = 4 * 1024
#: Launches of replicas are named ``replica-<uid>-<generation>``.
LAUNCH_PREFIX = "replica-"


def deployments_reconcile(*, at: datetime, uid: str | None = None) -> int:
    """Reconcile each deployment that is not stopped; return how many were leased."""
    rows = Deployment.objects.exclude(state=DeploymentState.STOPPED).select_related("team", "queue")
    if uid is not None:
        rows = rows.filter(uid=uid)
    return reconcile_rows(
        rows,
        lambda deployment: _reconcile_deployment(deployment, at),
        limit=DEPLOYMENT_BATCH,
        ttl=DEPLOYMENT_LEASE,
    )


def _reconcile_deployment(deployment: Deployment, at: datetime) -> None:
    live = list(selectors.live_replicas(deployment))
    if deployment.state == DeploymentState.STOPPING:
        _stop_replicas(deployment, live, at)
        return
    revision, serving = selectors.newest_revision(deployment), selectors.routed_revision(deployment)
    backend = revision.backends.order_by("-id")[0]
    current = [replica for replica in live if replica.backend_id == backend.pk]
    serves = any(replica.state == ReplicaState.READY for replica in live)
    paused = deployment.paused_at is not None
    # Also before a replica that serves is stopped to make room for the first of the revision.
    begins = revision != serving and not paused and not current and deployment.replica_count > 0
    pending = begins and serves and _await_weights(deployment, revision, serving, at)
    actions = plan_rollout(
        [
            RevisionReplica(
                key=replica.pk,
                revision=replica.backend.revision.number,
                state=ReplicaState(replica.state),
            )
            for replica in live
        ],
        replicas=deployment.replica_count,
        wanted=revision.number,
        serving=serving.number,
        limits=deployment.strategy.limits(replicas=deployment.replica_count),
        paused=paused or pending,
    )
    _apply_rollout_actions(deployment, actions, live, wanted=backend, serving=serving, at=at)
    if pending:
        return
    ready = sum(replica.state == ReplicaState.READY for replica in current)
    if ready >= deployment.replica_count:
        services.traffic_shift(deployment=deployment, backend=backend)
    elif revision != serving and _fail_rollout(deployment, revision, current, at):
        return
    _update_deployment_state(deployment, current, ready, at)


def _await_weights(
    deployment: Deployment, revision: Revision, serving: Revision, at: datetime
) -> bool:
    """Whether the first replicas of the revision wait until its weights are on the nodes.

    They would take cards and download the same; meanwhile the earlier revision serves as in a paused rollout.
    """
    found = weights.rollout_weights_download(
        deployment=deployment,
        revision=revision,
        serving=serving,
        within=timedelta(seconds=settings.NINEFOLD_ROLLOUT_PROGRESS_DEADLINE_SECONDS),
        at=at,
    )
    if found is None:
        return False
    reason = Reason(
        "rollout.weights.downloaded",
        "the weights of revision {revision} are on {done} of {nodes} nodes",
        revision=revision.number,
        done=found.done,
        nodes=found.nodes,
    )
    if deployment.state_reason != reason:
        Deployment.objects.filter(pk=deployment.pk, lease_token=deployment.lease_token).update(
            state_reason=reason
        )
    return found.pending > 0


def _apply_rollout_actions(
    deployment: Deployment,
    actions: RolloutActions,
    live: list[Replica],
    *,
    wanted: Backend,
    serving: Revision,
    at: datetime,
) -> None:
    if actions.create:
        services.replicas_create(backend=wanted, deployment=deployment, count=actions.create)
    if actions.create_serving:
        services.replicas_create(
            backend=serving.backends.order_by("-id")[0],
            deployment=deployment,
            count=actions.create_serving,
        )
    services.replicas_stop(
        replicas=[replica for replica in live if replica.pk in actions.surplus],
        reason=ReleaseReason.FINISHED,
        message=Reason("replica.stop.scaled_down", "the deployment was scaled down"),
        at=at,
    )
    if actions.superseded:
        services.superseded_replicas_stop(
            deployment=deployment,
            replicas=[replica for replica in live if replica.pk in actions.superseded],
            message=Reason(
                "replica.stop.revision_replaced",
                "the replica was replaced by revision {revision}",
                revision=wanted.revision.number,
            ),
            at=at,
        )


def _fail_rollout(
    deployment: Deployment, revision: Revision, current: list[Replica], at: datetime
) -> bool:
    """Return to the revision that serves if the newest has failed; return whether it has."""
    if deployment.paused_at is not None:
        return False
    reason = rollout_failure(
        selectors.rollout_replicas(current),
        deadline=timedelta(seconds=settings.NINEFOLD_ROLLOUT_PROGRESS_DEADLINE_SECONDS),
        resumed_at=deployment.resumed_at,
        at=at,
    )
    if reason:
        services.revision_fail(deployment=deployment, revision=revision, at=at, reason=reason)
    return bool(reason)


def _stop_replicas(deployment: Deployment, live: list[Replica], at: datetime) -> None:
    if live:
        services.replicas_stop(
            replicas=live,
            reason=ReleaseReason.FINISHED,
            message=Reason("replica.stop.deployment_stopping", "the deployment is stopping"),
            at=at,
        )
    else:
        services.deployment_confirm_stopped(deployment=deployment, at=at)


def _update_deployment_state(
    deployment: Deployment, current: list[Replica], ready: int, at: datetime
) -> None:
    """Derive the deployment's state from its replicas."""
    state = DeploymentState(deployment.state)
    desired = deployment.replica_count
    crashed = [replica for replica in current if replica.state == ReplicaState.BACKOFF]
    reason = Reason(
        "deployment.state.replicas_ready",
        "{ready} of {replicas} replicas are ready",
        ready=ready,
        replicas=desired,
    )
    if ready >= desired:
        event = DeploymentEvent.BECOME_READY
    elif crashed:
        event = DeploymentEvent.DEGRADE
        reason = Reason(
            "deployment.state.replicas_crashed",
            "{ready} of {replicas} replicas are ready; {reason}",
            ready=ready,
            replicas=desired,
            reason=crashed[0].message,
        )
    elif state is DeploymentState.READY:
        event = DeploymentEvent.DEGRADE
    else:
        return
    if DEPLOYMENT.allows(state, event):
        if event is DeploymentEvent.BECOME_READY:
            # Whoever waits for this state sends requests at once, before the next periodic publication.
            gateways.gateway_snapshot_publish(at=at)
        services.deployment_transition(deployment, event, at=at, reason=reason)


def replicas_reconcile(*, at: datetime, uid: str | None = None) -> int:
    """Reconcile each live replica; return how many were leased."""
    rows = Replica.objects.filter(state__in=selectors.LIVE_REPLICAS)
    if uid is not None:
        rows = rows.filter(uid=uid)
    rows = rows.select_related(
        "backend__revision__deployment__team", "backend__revision__model_version__artifact"
    )
    # Cluster → its error message. An unreachable cluster is tried once in a run.
    unreachable: dict[int, Reason] = {}

    @cache
    def propagation() -> selectors.SnapshotPropagation:
        """Once for all draining replicas: the rows were read before, so the snapshot is without them."""
        snapshot = gateways.gateway_snapshot_publish(at=at)
        return selectors.snapshot_propagation(version=snapshot.version, at=at)

    by_state: Mapping[ReplicaState, Callable[[Replica, datetime], None]] = {
        **RECONCILE_BY_STATE,
        ReplicaState.DRAINING: partial(_reconcile_draining_replica, propagation=propagation),
    }

    def reconcile(replica: Replica) -> None:
        if replica.cluster_id in unreachable:
            _set_replica_message(replica, unreachable[replica.cluster_id])
            return
        try:
            by_state[ReplicaState(replica.state)](replica, at)
        except ClusterUnavailable as error:
            if replica.cluster_id is not None:
                unreachable[replica.cluster_id] = error.message
            _set_replica_message(replica, error.message)

    return reconcile_rows(
        rows, reconcile, limit=REPLICA_BATCH, ttl=REPLICA_LEASE, record_error=_set_replica_message
    )


def _set_replica_message(replica: Replica, message: str) -> None:
    if replica.message != message:
        Replica.objects.filter(pk=replica.pk, lease_token=replica.lease_token).update(
            message=message
        )


def _cluster_adapter(replica: Replica) -> ClusterAdapter:
    """:raises ValueError: if the replica has not been admitted to a cluster."""
    if replica.cluster is None:
        raise ReasonedValueError(
            "replica.cluster.missing",
            "replica {replica} has not been admitted to a cluster",
            replica=replica.uid,
        )
    return fleet.cluster_adapter(replica.cluster)


def _observe_replica(replica: Replica) -> ObservedLaunch | None:
    return _cluster_adapter(replica).observe([replica.launch_name]).get(replica.launch_name)


def _reconcile_pending_replica(replica: Replica, at: datetime) -> None:
    claim = Claim.objects.get(uid=replica.claim_uid)
    if _evict_replica_if_revoked(replica, at):
        return
    if claim.state != ClaimState.ADMITTED:
        _set_replica_message(replica, claim.explanation)
        return
    services.replica_transition(
        replica,
        ReplicaEvent.ADMIT,
        at=at,
        reason=claim.explanation,
        chip=claim.chip,
        cluster=quotas_selectors.cluster_of_claim(claim),
    )
    _reconcile_admitted_replica(replica, at)


def _reconcile_admitted_replica(replica: Replica, at: datetime) -> None:
    if _evict_replica_if_revoked(replica, at):
        return
    try:
        adapter = _cluster_adapter(replica)
        adapter.launch(
            registry_selectors.launch_with_downloads(_render_launch(replica), cluster=adapter)
        )
    except StorageUnavailable:
        # The next run tries it again.
        raise
    except (LaunchRefused, ArtifactError, ValueError) as refusal:
        _record_replica_crash(
            replica,
            at,
            reason=Reason(
                "launch.start.failed",
                "the workload could not be started: {reason}",
                reason=str(refusal),
            ),
        )
        return
    services.replica_transition(
        replica, ReplicaEvent.LAUNCH, at=at, reason=Reason("launch.state.starting", "starting")
    )


def _render_launch(replica: Replica) -> Launch:
    """The Launch of this generation of the replica. Rendering is deterministic."""
    revision = replica.backend.revision
    claim = Claim.objects.select_related("queue").get(uid=replica.claim_uid)
    artifact = revision.model_version.artifact
    if artifact is None:
        raise ReasonedValueError(
            "model_version.files.missing",
            "{version} has no files",
            version=str(revision.model_version),
        )
    served = list(selectors.revision_adapters(revision))
    adapters = tuple(
        ServedAdapter(name=each.name, input=f"adapter-{number}", rank=each.rank)
        for number, each in enumerate(served, start=1)
    )
    adapter_inputs = (
        registry_selectors.lora_adapter_input(adapter.input, each.model_version)
        for adapter, each in zip(adapters, served, strict=True)
    )
    launch = adapter_registry.engine_by_name(revision.engine).render(
        RenderRequest(
            task=EngineTask.SERVE,
            name=replica.launch_name,
            spec={**revision.spec, "model_name": revision.deployment.name},
            chip=adapter_registry.all_chips()[claim.chip],
            placements=quotas_selectors.placements_of_claim(claim),
            inputs=(registry_selectors.input_tree("model", artifact), *adapter_inputs),
            adapters=adapters,
            model=registry_selectors.served_model_facts(revision.model_version),
            token=selectors.replica_engine_token(replica),
            labels={
                "team": revision.deployment.team.slug,
                "kind": selectors.OWNER_KIND,
                "uid": replica.uid,
                **quotas_selectors.launch_labels(claim),
            },
        )
    )
    return launch.limited(GangShape.from_json(claim.shape).limits, run_within=None)


def _reconcile_running_replica(replica: Replica, at: datetime) -> None:
    if _evict_replica_if_revoked(replica, at):
        return
    observed = _observe_replica(replica)
    if observed is None:
        _record_replica_crash(
            replica,
            at,
            reason=Reason(
                "launch.state.not_reported", "the cluster no longer reports the workload"
            ),
        )
    elif ended := [replica for replica in observed.replicas if replica.ended]:
        # Of several processes, the first to end by itself is the reason; the others cannot serve without it.
        end = min(
            ended,
            key=lambda one: (
                one.ended_at.timestamp() if one.ended_at else inf,
                one.cause is ExitCause.STOPPED,
            ),
        )
        reason = end.message or Reason(
            "launch.state.exited",
            "the process ended with exit code {exit_code}",
            exit_code=end.exit_code,
        )
        if len(observed.replicas) > 1:
            reason = Reason(
                "replica.process.ended", "process {index}: {reason}", index=end.index, reason=reason
            )
        _record_replica_crash(replica, at, reason=reason, process=end.index)
    elif replica.state == ReplicaState.STARTING:
        _check_replica_started(replica, observed, at)
    elif unready := [one for one in observed.replicas if one.phase is ReplicaPhase.STARTING]:
        # As a pod that is not ready leaves the endpoints of its Service: also if it is the last.
        services.replica_transition(
            replica,
            ReplicaEvent.BECOME_UNREADY,
            at=at,
            reason=unready[0].message or UNREADY,
        )


def _check_replica_started(replica: Replica, observed: ObservedLaunch, at: datetime) -> None:
    if waiting := [one for one in observed.replicas if one.phase is not ReplicaPhase.RUNNING]:
        _set_replica_message(
            replica, waiting[0].message or Reason("launch.state.starting", "starting")
        )
        return
    endpoint = _cluster_adapter(replica).endpoint(
        replica.launch_name, role=ROLES[EngineTask.SERVE], index=0, port=HTTP_PORT_NAME
    )
    if endpoint is not None:
        services.replica_transition(
            replica,
            ReplicaEvent.BECOME_READY,
            at=at,
            reason=Reason("replica.state.ready", "ready"),
            url=endpoint.url,
            ready_at=at,
        )


def _record_replica_crash(replica: Replica, at: datetime, *, reason: str, process: int = 0) -> None:
    """Record how it ended, with the end of the log of that process, and when to restart it."""
    was_stable = replica.ready_at is not None and at - replica.ready_at > BACKOFF_RESET_AFTER
    crashes = 1 if was_stable else replica.crashes + 1
    delay = restart_backoff(crashes=crashes)
    services.replica_transition(
        replica,
        ReplicaEvent.CRASH,
        at=at,
        reason=Reason(
            "replica.state.crashed",
            "{reason}; restart in {seconds} s (consecutive crashes: {crashes})",
            reason=reason,
            seconds=f"{delay.total_seconds():.0f}",
            crashes=crashes,
        ),
        crashes=crashes,
        restart_at=at + delay,
        ready_at=None,
        url="",
        log_tail=_replica_log_tail(replica, process),
    )


def _replica_log_tail(replica: Replica, process: int) -> str:
    chunk = _cluster_adapter(replica).log(
        replica.launch_name,
        role=ROLES[EngineTask.SERVE],
        index=process,
        offset=-LOG_TAIL_BYTES,
        limit=LOG_TAIL_BYTES,
    )
    return chunk.content.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _reconcile_replica_in_backoff(replica: Replica, at: datetime) -> None:
    if _evict_replica_if_revoked(replica, at) or (
        replica.restart_at is not None and at < replica.restart_at
    ):
        return
    adapter, observed = _cluster_adapter(replica), _observe_replica(replica)
    if observed is not None and not observed.ended:
        # Processes that outlived the one that ended still use their cards.
        adapter.stop(replica.launch_name, grace=timedelta())
        return
    adapter.remove(replica.launch_name)
    services.replica_transition(
        replica,
        ReplicaEvent.RESTART,
        at=at,
        reason=Reason("replica.state.restarting", "restarting"),
        generation=replica.generation + 1,
        restart_at=None,
    )
    _reconcile_admitted_replica(replica, at)


def _evict_replica_if_revoked(replica: Replica, at: datetime) -> bool:
    """Begin to drain or to stop the replica if its claim is being revoked; return whether it is."""
    claim = _revoked_claim(replica)
    if claim is None:
        return False
    if replica.state == ReplicaState.READY and not _is_eviction_due(claim, at):
        # Its open requests are for the next run: this one may have published a snapshot with it.
        _begin_eviction(replica, ReplicaEvent.DRAIN, claim, at)
    else:
        _begin_eviction(replica, ReplicaEvent.STOP, claim, at)
        _reconcile_stopping_replica(replica, at)
    return True


def _revoked_claim(replica: Replica) -> Claim | None:
    """Its claim if that is being revoked."""
    claim = Claim.objects.get(uid=replica.claim_uid)
    return claim if claim.state == ClaimState.REVOKING else None


def _is_eviction_due(claim: Claim, at: datetime) -> bool:
    """Whether its replica has to stop, open requests or not: its processes need the rest of the grace period."""
    return claim.revoke_by is None or at >= claim.revoke_by - EVICTION_GRACE


def _begin_eviction(replica: Replica, event: ReplicaEvent, claim: Claim, at: datetime) -> None:
    services.replica_transition(
        replica,
        event,
        at=at,
        reason=Reason("launch.stop.evicted", "evicting ({reason})", reason=claim.release_reason),
        stop_reason=claim.release_reason,
    )


def _reconcile_draining_replica(
    replica: Replica, at: datetime, *, propagation: Callable[[], selectors.SnapshotPropagation]
) -> None:
    # Read in each run: its grace period may have been shortened.
    claim = _revoked_claim(replica)
    due = claim is not None and _is_eviction_due(claim, at)
    if not due and not _is_traffic_away(replica, propagation(), at):
        return
    if claim is None:
        services.replica_transition(replica, ReplicaEvent.STOP, at=at, reason=replica.message)
    else:
        # Also one that drained for another reason when its claim was revoked.
        _begin_eviction(replica, ReplicaEvent.STOP, claim, at)
    _reconcile_stopping_replica(replica, at)


def _is_traffic_away(
    replica: Replica, propagation: selectors.SnapshotPropagation, at: datetime
) -> bool:
    """Whether live gateways send it no requests any more and have no open ones, or the time for that is over."""
    elapsed = at - (selectors.replica_state_since(replica) or at)
    confirmed = propagation.updated == propagation.gateways
    if not confirmed and elapsed <= SNAPSHOT_CONFIRMED_WITHIN:
        return False
    within = timedelta(seconds=settings.NINEFOLD_REPLICA_DRAIN_SECONDS)
    return replica.uid not in propagation.draining or elapsed > within


def _reconcile_stopping_replica(replica: Replica, at: datetime) -> None:
    if replica.cluster is not None:
        adapter = _cluster_adapter(replica)
        evicted = replica.stop_reason not in ("", ReleaseReason.FINISHED)
        adapter.stop(replica.launch_name, grace=EVICTION_GRACE if evicted else STOP_GRACE)
        observed = _observe_replica(replica)
        if observed is not None and not observed.ended:
            return
        adapter.remove(replica.launch_name)
    reason = ReleaseReason(replica.stop_reason or ReleaseReason.FINISHED)
    with transaction.atomic():
        services.replica_transition(
            replica,
            ReplicaEvent.CONFIRM,
            at=at,
            reason=Reason("launch.state.stopped", "stopped"),
            url="",
        )
        quotas.claim_release(uid=replica.claim_uid, reason=reason, at=at)


RECONCILE_BY_STATE: Mapping[ReplicaState, Callable[[Replica, datetime], None]] = {
    ReplicaState.PENDING: _reconcile_pending_replica,
    ReplicaState.ADMITTED: _reconcile_admitted_replica,
    ReplicaState.STARTING: _reconcile_running_replica,
    ReplicaState.READY: _reconcile_running_replica,
    ReplicaState.BACKOFF: _reconcile_replica_in_backoff,
    ReplicaState.STOPPING: _reconcile_stopping_replica,
}


def replica_launches_cleanup() -> int:
    """Stop and remove Launches that no live replica or weight download owns; return how many were.

    A worker that lost its lease may have launched a replica that had been stopped or restarted meanwhile.
    """
    removed = 0
    for cluster in Cluster.objects.all():
        try:
            adapter = fleet.cluster_adapter(cluster)
            names = adapter.names()
            removed += _clean_up_replica_launches(cluster, adapter, names)
            removed += weight_launches_cleanup(cluster, adapter, names)
        except (ClusterError, AdapterNotFound) as error:
            log.warning("a sweep failed", extra={"cluster": cluster.name, "error": str(error)})
    return removed


def _clean_up_replica_launches(
    cluster: Cluster, adapter: ClusterAdapter, names: Collection[str]
) -> int:
    uids = {
        name: name.removeprefix(LAUNCH_PREFIX).rpartition("-")[0]
        for name in names
        if name.startswith(LAUNCH_PREFIX)
    }
    # A Launch of an unknown replica may belong to another control plane.
    known = {
        replica.uid: replica
        for replica in Replica.objects.filter(cluster=cluster, uid__in=uids.values())
    }
    observed = adapter.observe(uids)
    removed = 0
    for name, uid in uids.items():
        replica = known.get(uid)
        if replica is None or _owns_launch(replica, name):
            continue
        launch = observed.get(name)
        if launch is not None and not launch.ended:
            log.warning("something served that had been stopped", extra={"replica": uid})
            adapter.stop(name, grace=timedelta())
        else:
            adapter.remove(name)
        removed += 1
    return removed


def _owns_launch(replica: Replica, name: str) -> bool:
    """Whether the Launch belongs to the replica. A later generation than the row's is being launched right now."""
    if replica.state == ReplicaState.STOPPED:
        return False
    return int(name.rpartition("-")[2]) >= replica.generation
