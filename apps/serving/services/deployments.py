"""Deployments and replicas: creation, revisions, scaling, and every transition of their state machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, Q

from apps.accounts.models import Team, User
from apps.accounts.services import record_audit_entry
from apps.jobs.services import SpecRefused
from apps.models import selectors as registry_selectors
from apps.quotas import selectors as quotas_selectors
from apps.quotas import services as quotas
from apps.quotas.models import Claim, Queue
from apps.serving.models import (
    AdapterRoute,
    Backend,
    Deployment,
    DeploymentTransition,
    Replica,
    ReplicaTransition,
    Revision,
    RevisionAdapter,
    Route,
    RouteBackend,
)
from apps.serving.selectors import (
    LIVE_REPLICAS,
    OWNER_KIND,
    WORKLOAD_KIND,
    newest_revision,
    weighted_backend_ids,
)
from apps.serving.selectors.lora_adapters import AdapterConfiguration, taken_route_names
from apps.serving.selectors.revision_configurations import (
    MAX_REPLICAS,
    RevisionConfiguration,
    replica_node_counts,
    revision_configuration_check,
)
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.domain.common.spec_fields import FieldFinding, field_finding
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.quotas.claims import GangShape, ReleaseReason, RoleShape
from controlplane.domain.serving import rollouts
from controlplane.domain.serving.lifecycle import (
    DEPLOYMENT,
    REPLICA,
    DeploymentEvent,
    DeploymentState,
    ReplicaEvent,
    ReplicaState,
)
from controlplane.domain.serving.rollouts import RolloutStrategy
from controlplane.outbox.messages import publish_message
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.models import new_uid
from controlplane.persistence.state_transitions import LeaseLost, apply_transition
from controlplane.ports import adapter_registry
from controlplane.ports.engines import ROLES, EngineTask

ALL_TRAFFIC = 100


DEFAULT_STRATEGY = RolloutStrategy()


@dataclass(frozen=True, slots=True, kw_only=True)
class _PreparedRevision:
    """A valid configuration, and what was read from the artifact store for it."""

    configuration: RevisionConfiguration
    #: Greatest rank of each adapter.
    ranks: tuple[int, ...]


def _prepare_revision(
    configuration: RevisionConfiguration,
    *,
    replicas: int,
    strategy: RolloutStrategy = DEFAULT_STRATEGY,
) -> _PreparedRevision:
    """Validate a configuration. Reads the artifact store, which may be slow, so no row is locked meanwhile.

    :raises SpecRefused: with all findings.
    """
    findings = (
        *revision_configuration_check(configuration, replicas=replicas),
        *strategy.findings(),
    )
    if findings:
        raise SpecRefused(findings)
    facts = [
        registry_selectors.lora_config_facts(adapter.model_version)
        for adapter in configuration.adapters
    ]
    return _PreparedRevision(
        configuration=configuration.with_engine(),
        ranks=tuple(known.rank if known is not None else 0 for known in facts),
    )


def _require_open_queue(queue: Queue) -> None:
    """:raises SpecRefused: if the queue admits nothing new. Checked when a deployment starts or grows."""
    if refusal := quotas_selectors.queue_closed_reason(queue):
        raise SpecRefused([FieldFinding(field="queue", message=refusal)])


def _require_pending_limit(user: User, *, more: int) -> None:
    """:raises SpecRefused: if the replicas, which are created later, exceed the user's pending claims."""
    try:
        quotas.pending_limit_check(user=user, more=more)
    except quotas.PendingLimitExceeded as refusal:
        raise SpecRefused([FieldFinding(field="replicas", message=str(refusal))]) from None


def deployment_create(
    *,
    actor: User,
    team: Team,
    name: str,
    configuration: RevisionConfiguration,
    queue: Queue,
    replicas: int = 1,
    strategy: RolloutStrategy = DEFAULT_STRATEGY,
) -> Deployment:
    """Create a starting deployment with its route.

    :raises SpecRefused: if the configuration is invalid, the queue admits nothing new, or the name is taken.
    """
    prepared = _prepare_revision(configuration, replicas=replicas, strategy=strategy)
    _require_open_queue(queue)
    try:
        with transaction.atomic():
            _require_pending_limit(actor, more=replicas)
            deployment = Deployment.objects.create(
                team=team,
                created_by=actor,
                name=name,
                queue=queue,
                replica_count=replicas,
                max_surge=strategy.max_surge,
                max_unavailable=strategy.max_unavailable,
                state_reason=Reason("claim.pending.cards", "waiting for cards"),
            )
            backend = _revision_create(deployment, prepared, actor)
            lock_in_transaction(AdvisoryLock.NAME_ROUTE)
            if taken_route_names([name]):
                raise SpecRefused([_name_taken(name, field="name")])
            route = Route.objects.create(name=name, deployment=deployment)
            RouteBackend.objects.create(route=route, backend=backend, weight=ALL_TRAFFIC)
            record_audit_entry(
                deployment,
                actor=actor,
                action="deployment.create",
                team=team,
                name=name,
                model=str(configuration.model_version),
                replicas=replicas,
            )
            publish_message("deployment.changed", deployment_uid=deployment.uid)
    except IntegrityError:
        raise SpecRefused([_name_taken(name, field="name")]) from None
    return deployment


def _name_taken(name: str, *, field: str) -> FieldFinding:
    return field_finding(
        field,
        "deployment.name.already_exists",
        "{name} is already in use; model names are unique across the company, choose another",
        name=repr(name),
    )


def _revision_create(deployment: Deployment, prepared: _PreparedRevision, actor: User) -> Backend:
    last = deployment.revisions.aggregate(last=Max("number"))["last"] or 0
    configuration = prepared.configuration
    engine = adapter_registry.engine_by_name(configuration.engine)
    revision = Revision.objects.create(
        deployment=deployment,
        number=last + 1,
        model_version=configuration.model_version,
        engine=configuration.engine,
        spec=dict(engine.normalise(EngineTask.SERVE, configuration.spec)),
        chips=list(configuration.chips),
        cards=configuration.cards,
        created_by=actor,
    )
    _adapters_create(revision, configuration.adapters, ranks=prepared.ranks)
    return Backend.objects.create(revision=revision, chips=revision.chips)


def _adapters_create(
    revision: Revision, adapters: Sequence[AdapterConfiguration], *, ranks: Sequence[int]
) -> None:
    """Store the adapters of a new revision and reserve their names.

    :raises SpecRefused: if a name is taken.
    """
    if not adapters:
        return
    lock_in_transaction(AdvisoryLock.NAME_ROUTE)
    names = [adapter.name for adapter in adapters]
    own = revision.deployment
    if taken := taken_route_names(names, deployment=own) | ({own.name} & set(names)):
        raise SpecRefused([_name_taken(name, field="adapters") for name in sorted(taken)])
    for adapter, rank in zip(adapters, ranks, strict=True):
        RevisionAdapter.objects.create(
            revision=revision,
            name=adapter.name,
            model_version=adapter.model_version,
            rank=rank,
        )
        AdapterRoute.objects.get_or_create(
            name=adapter.name, defaults={"deployment": revision.deployment}
        )


def adapter_routes_prune(*, deployment: Deployment) -> None:
    """Free the names of adapters that neither the newest revision nor one with traffic has."""
    wanted = RevisionAdapter.objects.filter(
        Q(revision=newest_revision(deployment))
        | Q(revision__backends__in=weighted_backend_ids(deployment))
    )
    AdapterRoute.objects.filter(deployment=deployment).exclude(
        name__in=wanted.values("name")
    ).delete()


def deployment_revise(
    *,
    deployment: Deployment,
    configuration: RevisionConfiguration,
    actor: User,
    at: datetime,
    strategy: RolloutStrategy | None = None,
) -> Revision:
    """Create a revision and roll it out; a paused rollout waits until it is resumed.

    :param strategy: the rollout strategy from now on; None leaves that of the deployment.
    :raises SpecRefused: if the configuration or the strategy is invalid.
    :raises IllegalTransition: if the deployment is stopped or being stopped.
    """
    prepared = _prepare_revision(
        configuration,
        replicas=max(1, deployment.replica_count),
        strategy=strategy or deployment.strategy,
    )
    return _revision_roll_out(
        deployment=deployment, prepared=prepared, strategy=strategy, actor=actor, at=at
    )


@transaction.atomic
def _revision_roll_out(
    *,
    deployment: Deployment,
    prepared: _PreparedRevision,
    strategy: RolloutStrategy | None,
    actor: User,
    at: datetime,
) -> Revision:
    row = lock_deployment(deployment)
    if strategy is not None:
        strategy_store(row, strategy, actor=actor)
    backend = _revision_create(row, prepared, actor)
    reason = Reason(
        "deployment.rollout.started",
        "rolling out revision {revision} ({version})",
        revision=backend.revision.number,
        version=str(prepared.configuration.model_version),
    )
    record_deployment_change(row, actor=actor, action="deployment.revise", at=at, reason=reason)
    return backend.revision


@transaction.atomic
def revision_fail(*, deployment: Deployment, revision: Revision, at: datetime, reason: str) -> None:
    """Record that the rollout of the revision failed; the deployment returns to the newest that has not.

    Does nothing if a route sends requests to it meanwhile, or a later revision has replaced it.
    """
    row = lock_deployment(deployment)
    if newest_revision(row).pk != revision.pk:
        return
    if weighted_backend_ids(row) & set(revision.backends.values_list("pk", flat=True)):
        return
    revision.failed_at, revision.failure_reason = at, reason
    revision.save(update_fields=["failed_at", "failure_reason"])
    earlier = newest_revision(row)
    adapter_routes_prune(deployment=row)
    message = Reason(
        "deployment.rollout.failed",
        "the rollout of revision {revision} failed: {reason}; revision {earlier} serves "
        "the requests",
        revision=revision.number,
        earlier=earlier.number,
        reason=reason,
    )
    deployment_transition(deployment, DeploymentEvent.CHANGE, at=at, reason=message)
    publish_message("deployment.changed", deployment_uid=row.uid)


@transaction.atomic
def deployment_scale(*, deployment: Deployment, replicas: int, actor: User, at: datetime) -> None:
    """Set the number of replicas.

    :raises SpecRefused: if the number is out of bounds, or it grows and the queue admits nothing new.
    :raises IllegalTransition: if the deployment is stopped or being stopped.
    """
    if not 1 <= replicas <= MAX_REPLICAS:
        raise SpecRefused.of(
            "replicas",
            "deployment.replicas.out_of_range",
            "the number of replicas must be 1 to {limit}, got {value}; to use no "
            "replicas, stop the deployment",
            limit=MAX_REPLICAS,
            value=replicas,
        )
    row = lock_deployment(deployment)
    if replicas > row.replica_count:
        _require_open_queue(row.queue)
    reason = Reason(
        "deployment.scaling.started",
        "scaling from {before} to {after} replicas",
        before=row.replica_count,
        after=replicas,
    )
    row.replica_count = replicas
    row.save(update_fields=["replica_count"])
    record_deployment_change(row, actor=actor, action="deployment.scale", at=at, reason=reason)


@transaction.atomic
def deployment_stop(*, deployment: Deployment, actor: User, at: datetime) -> None:
    """Stop the deployment.

    :raises IllegalTransition: if it is stopped or being stopped already.
    """
    row = lock_deployment(deployment)
    deployment_transition(
        row,
        DeploymentEvent.STOP,
        at=at,
        reason=Reason("transition.by_user.stopped", "stopped by {user}", user=actor.username),
        actor=actor.username,
    )
    record_audit_entry(row, actor=actor, action="deployment.stop")
    publish_message("deployment.changed", deployment_uid=row.uid)


@transaction.atomic
def deployment_start(*, deployment: Deployment, actor: User, at: datetime) -> None:
    """Start a stopped deployment.

    :raises IllegalTransition: if it is not stopped.
    :raises SpecRefused: if its queue admits nothing new.
    """
    row = lock_deployment(deployment)
    _require_open_queue(row.queue)
    deployment_transition(
        row,
        DeploymentEvent.START,
        at=at,
        reason=Reason("transition.by_user.started", "started by {user}", user=actor.username),
        actor=actor.username,
    )
    record_audit_entry(row, actor=actor, action="deployment.start")
    publish_message("deployment.changed", deployment_uid=row.uid)


@transaction.atomic
def deployment_delete(*, deployment: Deployment, actor: User, at: datetime) -> bool:
    """Delete the deployment and free its name. Its usage is kept.

    The replicas of a running one drain and stop first; until then it is stopping and cannot be changed. A second
    call changes nothing.

    :returns: whether it is deleted already; otherwise it will be once its replicas have stopped.
    :raises IllegalTransition: if a route has backends of it and of another deployment.
    """
    row = lock_deployment(deployment)
    if row.deletion_requested_at is not None:
        return False
    _require_unshared_routes(row)
    row.deletion_requested_at = at
    row.save(update_fields=["deletion_requested_at"])
    record_audit_entry(row, actor=actor, action="deployment.delete")
    if row.state == DeploymentState.STOPPED:
        _deployment_remove(row, at=at)
        return True
    if row.state != DeploymentState.STOPPING:
        reason = Reason(
            "deployment.state.deleting",
            "deleted by {user}; it disappears when its replicas have stopped",
            user=actor.username,
        )
        deployment_transition(row, DeploymentEvent.STOP, at=at, reason=reason, actor=actor.username)
    publish_message("deployment.changed", deployment_uid=row.uid)
    return False


@transaction.atomic
def deployment_confirm_stopped(*, deployment: Deployment, at: datetime) -> None:
    """Record that all replicas have stopped, and remove the deployment if its deletion was requested."""
    row = lock_deployment(deployment)
    deployment_transition(
        row,
        DeploymentEvent.CONFIRM,
        at=at,
        reason=Reason("deployment.state.stopped", "all replicas have stopped"),
    )
    if row.deletion_requested_at is not None:
        _deployment_remove(row, at=at)


def _deployment_remove(row: Deployment, *, at: datetime) -> None:
    Route.objects.filter(deployment=row).delete()
    AdapterRoute.objects.filter(deployment=row).delete()
    row.deleted_at = at
    row.save(update_fields=["deleted_at"])


def _require_unshared_routes(row: Deployment) -> None:
    """:raises IllegalTransition: if a route has backends of it and of another deployment."""
    # Before its weights: a change of weights locks the route first.
    route = Route.objects.select_for_update(no_key=True).get(deployment=row)
    own = RouteBackend.objects.filter(backend__revision__deployment=row)
    routes = own.exclude(route=route).order_by("route__name").values_list("route__name", flat=True)
    if names := ", ".join(routes):
        event = f"be deleted while it is a backend of the route {names}; remove it there first"
        raise IllegalTransition(machine=DEPLOYMENT.name, state=row.state, event=event)
    foreign = route.weights.exclude(backend__revision__deployment=row).order_by("id")
    if names := ", ".join(foreign.values_list("backend__revision__deployment__name", flat=True)):
        event = f"be deleted while its route has the backend {names}; remove it there first"
        raise IllegalTransition(machine=DEPLOYMENT.name, state=row.state, event=event)


def strategy_store(row: Deployment, strategy: RolloutStrategy, *, actor: User) -> bool:
    """Store the rollout strategy of a locked deployment; return whether it is another one."""
    if strategy == row.strategy:
        return False
    row.max_surge, row.max_unavailable = strategy.max_surge, strategy.max_unavailable
    row.save(update_fields=["max_surge", "max_unavailable"])
    record_audit_entry(
        row,
        actor=actor,
        action="deployment.change_strategy",
        max_surge=strategy.max_surge,
        max_unavailable=strategy.max_unavailable,
    )
    return True


def lock_deployment(deployment: Deployment) -> Deployment:
    """The deployment's row, locked.

    :raises IllegalTransition: if it has been deleted meanwhile.
    """
    row = (
        Deployment.objects.select_for_update(no_key=True, of=("self",))
        .select_related("team")
        .get(pk=deployment.pk)
    )
    if row.deleted_at is not None:
        raise IllegalTransition(machine=DEPLOYMENT.name, state="deleted", event="change")
    return row


def record_deployment_change(
    row: Deployment, *, actor: User, action: str, at: datetime, reason: str
) -> None:
    deployment_transition(row, DeploymentEvent.CHANGE, at=at, reason=reason, actor=actor.username)
    record_audit_entry(row, actor=actor, action=action, change=reason)
    publish_message("deployment.changed", deployment_uid=row.uid)


@transaction.atomic
def deployment_transition(
    deployment: Deployment,
    event: DeploymentEvent,
    *,
    at: datetime,
    reason: str,
    actor: str = "",
    **changes: Any,
) -> None:
    """Apply an event; publish an outbox message if the deployment becomes ready or degraded."""
    was_degraded = deployment.state == DeploymentState.DEGRADED
    apply_transition(
        deployment,
        DEPLOYMENT,
        event,
        into=DeploymentTransition,
        at=at,
        reason=reason,
        actor=actor,
        state_reason=reason,
        **changes,
    )
    if event is DeploymentEvent.BECOME_READY:
        publish_message(
            "deployment.ready",
            event_uid=new_uid(),
            deployment_uid=deployment.uid,
            recovered=was_degraded,
            reason=reason,
            at=at.isoformat(),
        )
    elif event is DeploymentEvent.DEGRADE:
        publish_message(
            "deployment.degraded",
            event_uid=new_uid(),
            deployment_uid=deployment.uid,
            reason=reason,
            at=at.isoformat(),
        )


def replica_transition(
    replica: Replica, event: ReplicaEvent, *, at: datetime, reason: str, **changes: Any
) -> None:
    """Apply an event, under the replica's row lease where the caller has one."""
    apply_transition(
        replica,
        REPLICA,
        event,
        into=ReplicaTransition,
        at=at,
        reason=reason,
        lease_token=replica.lease_token,
        message=reason,
        **changes,
    )


@transaction.atomic
def replicas_create(*, backend: Backend, deployment: Deployment, count: int) -> None:
    """Create that many replicas of a backend; none if the rollout was paused or resumed meanwhile.

    :raises LeaseLost: if another worker has the lease of the deployment; it would create them as well.
    :raises IllegalTransition: if it is stopped or being stopped: nothing would stop them again.
    """
    row = Deployment.objects.select_for_update(no_key=True).get(pk=deployment.pk)
    if row.lease_token != deployment.lease_token:
        raise LeaseLost("deployment.lease.lost", "another worker has the lease of the deployment")
    if row.state in (DeploymentState.STOPPING, DeploymentState.STOPPED):
        raise IllegalTransition(machine=DEPLOYMENT.name, state=row.state, event="get replicas")
    if row.paused_at != deployment.paused_at:
        return
    for _ in range(count):
        replica_create(backend=backend, deployment=deployment)


@transaction.atomic
def replica_create(*, backend: Backend, deployment: Deployment) -> Replica:
    """Create a replica of a backend, with a claim of one process on each of its nodes.

    The claim of the first replica of a backend is not preemptible; those of the others are.
    """
    has_firm = _has_nonpreemptible_replica(backend)
    replica = Replica.objects.create(
        backend=backend, message=Reason("claim.pending.cards", "waiting for cards")
    )
    nodes, cards = replica_node_counts(backend.chips, backend.revision.cards)
    claim_request = quotas.ClaimRequest(
        owner=(OWNER_KIND, replica.uid),
        team=deployment.team,
        queue=deployment.queue,
        shape=GangShape(
            roles=(
                RoleShape(
                    name=ROLES[EngineTask.SERVE],
                    replicas=nodes,
                    cards=cards,
                    limits=Resources(cpu=Millicpu(cards * 1000), memory=Bytes(0)),
                ),
            )
        ),
        chips=backend.chips,
        work=quotas.ClaimWorkload(
            kind=WORKLOAD_KIND,
            uid=deployment.uid,
            name=deployment.name,
            user=deployment.created_by,
        ),
        # The deployment was requested before this replica.
        terms=quotas.ClaimTerms(preemptible=has_firm, continues=True),
    )
    (claim,) = quotas.claims_create(requests=[claim_request])
    replica.claim_uid = claim.uid
    replica.save(update_fields=["claim_uid"])
    return replica


def _has_nonpreemptible_replica(backend: Backend) -> bool:
    remaining = Replica.objects.filter(backend=backend, state__in=LIVE_REPLICAS).exclude(
        state__in=(ReplicaState.DRAINING, ReplicaState.STOPPING)
    )
    return Claim.objects.filter(
        owner_kind=OWNER_KIND, owner_uid__in=remaining.values("uid"), preemptible=False
    ).exists()


def replicas_stop(
    *, replicas: Sequence[Replica], reason: ReleaseReason, message: str, at: datetime
) -> None:
    """Begin to stop the replicas that are not stopping yet; those that serve drain first."""
    for replica in replicas:
        state = ReplicaState(replica.state)
        if REPLICA.allows(state, ReplicaEvent.DRAIN):
            event = ReplicaEvent.DRAIN
        elif state is not ReplicaState.DRAINING and REPLICA.allows(state, ReplicaEvent.STOP):
            event = ReplicaEvent.STOP
        else:
            continue
        replica_transition(replica, event, at=at, reason=message, stop_reason=reason)


@transaction.atomic
def superseded_replicas_stop(
    *, deployment: Deployment, replicas: Sequence[Replica], message: str, at: datetime
) -> None:
    """Begin to stop replicas of other revisions; none if the rollout was paused or resumed meanwhile."""
    row = Deployment.objects.select_for_update(no_key=True).get(pk=deployment.pk)
    if row.paused_at == deployment.paused_at:
        replicas_stop(replicas=replicas, reason=ReleaseReason.FINISHED, message=message, at=at)


@transaction.atomic
def traffic_shift(*, deployment: Deployment, backend: Backend) -> None:
    """Let every route with other backends of the deployment have this one, by a rollout strategy.

    The deployment's share of each route stays as it is, and so do backends of other deployments. Writes
    nothing if no other backend of the deployment has a weight.
    """
    own = RouteBackend.objects.filter(backend__revision__deployment=deployment)
    superseded = own.exclude(backend=backend)
    keys = list(superseded.values_list("route", flat=True))
    if not keys:
        return
    for route in Route.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk"):
        weights = dict(own.filter(route=route).values_list("backend", "weight"))
        if not weights.keys() - {backend.pk}:
            continue
        shifted = rollouts.shift_all_traffic_at_once(weights, to=backend.pk)
        own.filter(route=route).exclude(backend__in=shifted).delete()
        for key, weight in shifted.items():
            RouteBackend.objects.update_or_create(
                route=route, backend_id=key, defaults={"weight": weight}
            )
    adapter_routes_prune(deployment=deployment)
