"""Deployments, their revisions, replicas and rollouts: lists, details, changes of revisions, events and logs."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any

from django.db.models import (
    Count,
    F,
    IntegerField,
    Min,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    Value,
)
from django.db.models.functions import Coalesce

from apps.accounts import selectors as accounts
from apps.fleet import selectors as fleet
from apps.fleet.models import Node
from apps.quotas.models import Allocation, Claim
from apps.serving.models import (
    AdapterRoute,
    Backend,
    Deployment,
    DeploymentTransition,
    GatewayCall,
    Replica,
    ReplicaTransition,
    Revision,
    Route,
    RouteBackend,
    WeightDownload,
)
from controlplane.domain.serving.lifecycle import DeploymentState, ReplicaState
from controlplane.domain.serving.rollouts import (
    RolloutLimits,
    RolloutPhase,
    RolloutReplica,
    rollout_phase,
)
from controlplane.ports.clusters import ClusterError, LogChunk
from controlplane.ports.engines import ROLES, EngineTask

OWNER_KIND = "replica"
#: The kind that pages show for the claims of replicas.
WORKLOAD_KIND = "deployment"
#: The kind of weight downloads in the labels of their Launches.
WEIGHTS_OWNER_KIND = "weight-download"
LIVE_REPLICAS = tuple(state for state in ReplicaState if state is not ReplicaState.STOPPED)


def deployments_visible(user: accounts.RequestUser) -> QuerySet[Deployment]:
    return (
        Deployment.objects.filter(team__in=accounts.teams_visible(user), deleted_at=None)
        .select_related("team", "created_by", "queue", "route")
        .annotate(
            ready_replicas=Count(
                "revisions__backends__replicas",
                filter=Q(revisions__backends__replicas__state=ReplicaState.READY),
            )
        )
    )


def newest_revision(deployment: Deployment) -> Revision:
    """The revision that the deployment should serve: the newest whose rollout has not failed."""
    return (
        deployment.revisions.filter(failed_at=None)
        .select_related(
            "model_version__line", "model_version__artifact", "model_version__catalog_model"
        )
        .order_by("-number")[0]
    )


def routed_revision(deployment: Deployment) -> Revision:
    """The revision that its route has: the newest one, except while a rollout is in progress."""
    return (
        deployment.revisions.filter(
            backends__in=RouteBackend.objects.filter(route__deployment=deployment).values("backend")
        )
        .select_related(
            "model_version__line", "model_version__artifact", "model_version__catalog_model"
        )
        .order_by("-number")[0]
    )


def failed_rollout(deployment: Deployment) -> Revision | None:
    """The newest revision, if its rollout failed."""
    newest = deployment.revisions.order_by("-number").first()
    return newest if newest is not None and newest.failed_at is not None else None


def nodes_of_deployment(deployment: Deployment) -> list[Node]:
    """The nodes on which its live replicas have cards, by name."""
    claims = Claim.objects.filter(
        uid__in=live_replicas(deployment).exclude(claim_uid="").values("claim_uid")
    )
    uids = {one["node"] for placement in claims.values_list("placement") for one in placement[0]}
    return list(Node.objects.filter(uid__in=uids).select_related("cluster").order_by("name"))


def weight_downloads_visible(user: accounts.RequestUser) -> QuerySet[WeightDownload]:
    return WeightDownload.objects.filter(team__in=accounts.teams_visible(user)).select_related(
        "team", "created_by", "model_version__line", "node__cluster"
    )


def node_weights(node: Node, *, user: accounts.RequestUser) -> list[WeightDownload]:
    """The newest download of each model version to the node that the user may see, the latest first."""
    newest: dict[int, WeightDownload] = {}
    for row in weight_downloads_visible(user).filter(node=node).order_by("-id"):
        newest.setdefault(row.model_version_id, row)
    return list(newest.values())


def rollout_replicas(replicas: Collection[Replica]) -> list[RolloutReplica]:
    """The replicas of a revision, with the time at which each first got its cards."""
    first_admitted = dict(
        ReplicaTransition.objects.filter(
            entity__in=[replica.pk for replica in replicas], to_state=ReplicaState.ADMITTED
        )
        .order_by()
        .values_list("entity")
        .annotate(Min("at"))
    )
    return [
        RolloutReplica(
            state=ReplicaState(replica.state),
            crashes=replica.crashes,
            message=replica.message,
            admitted_at=first_admitted.get(replica.pk),
        )
        for replica in replicas
    ]


def replica_state_since(replica: Replica) -> datetime | None:
    """When it got its present state."""
    last = replica.transitions.order_by("-id").first()
    return last.at if last is not None else None


def live_replicas(deployment: Deployment) -> QuerySet[Replica]:
    return Replica.objects.filter(
        backend__revision__deployment=deployment, state__in=LIVE_REPLICAS
    ).select_related("backend__revision", "cluster")


def weighted_backend_ids(deployment: Deployment) -> set[int]:
    """Primary keys of its backends that have a weight, in its own route or another."""
    weights = RouteBackend.objects.filter(backend__revision__deployment=deployment, weight__gt=0)
    return set(weights.values_list("backend", flat=True))


def revisions_of(deployment: Deployment) -> QuerySet[Revision]:
    """Its revisions, the newest first; each backend has its live replicas in ``live``."""
    live = Prefetch(
        "replicas",
        queryset=Replica.objects.filter(state__in=LIVE_REPLICAS).order_by("id"),
        to_attr="live",
    )
    backends = Prefetch("backends", queryset=Backend.objects.prefetch_related(live))
    return (
        deployment.revisions.select_related(
            "model_version__line",
            "model_version__artifact",
            "model_version__catalog_model",
            "created_by",
        )
        .prefetch_related(backends, "adapters__model_version__line")
        .order_by("-number")
    )


def replicas_visible(user: accounts.RequestUser) -> QuerySet[Replica]:
    return Replica.objects.filter(
        backend__revision__deployment__team__in=accounts.teams_visible(user)
    ).select_related("backend__revision__deployment__team", "cluster")


def replica_nodes(replica: Replica) -> tuple[str, ...]:
    """The node of each of its processes, by index; empty before it has cards."""
    claim = Claim.objects.filter(uid=replica.claim_uid).first()
    if claim is None:
        return ()
    # Nodes of a removed cluster have names too: a stopped replica keeps its log.
    names = dict(
        Node._base_manager.filter(uid__in=[one["node"] for one in claim.placement]).values_list(
            "uid", "name"
        )
    )
    placed = sorted(claim.placement, key=lambda one: int(one["index"]))
    return tuple(names.get(one["node"], "") for one in placed)


def replica_log(replica: Replica, *, process: int, offset: int, limit: int) -> LogChunk:
    """Up to ``limit`` bytes of the log of one process of its current run from ``offset``.

    :param process: index; 0 is the process that serves the requests.
    :param offset: negative counts from the end.
    """
    ended = replica.state == ReplicaState.STOPPED
    if replica.cluster is None:
        return LogChunk(content=b"", next_offset=0, complete=ended)
    adapter = fleet.cluster_adapter(replica.cluster)
    role = ROLES[EngineTask.SERVE]
    try:
        return adapter.log(
            replica.launch_name, role=role, index=process, offset=offset, limit=limit
        )
    except ClusterError:
        return LogChunk(content=b"", next_offset=max(0, offset), complete=False)


def first_available_route_name(wanted: str) -> str:
    """``wanted``, or ``wanted-2``, ``-3``, … : the first that no route has."""
    taken = {
        name
        for routes in (Route, AdapterRoute)
        for name in routes.objects.filter(name__startswith=wanted).values_list("name", flat=True)
    }
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in itertools.count(1))
    return next(name for name in names if name not in taken)


#: The period in which the list counts calls.
RECENT = timedelta(hours=24)
MAX_EVENTS = 100
#: Replicas whose log is offered, the newest first.
MAX_LOGGED_REPLICAS = 12


def deployments_with_calls(user: accounts.RequestUser, *, at: datetime) -> QuerySet[Deployment]:
    """With ``model_name``, ``model_number``, ``model_uid`` of the newest revision, and ``calls`` of 24 hours."""
    newest = Revision.objects.filter(deployment=OuterRef("pk")).order_by("-number")
    calls = (
        GatewayCall.objects.filter(route=OuterRef("name"), at__gte=at - RECENT)
        .order_by()
        .values("route")
        .annotate(amount=Count("id"))
        .values("amount")
    )
    return deployments_visible(user).annotate(
        model_name=Subquery(newest.values("model_version__line__name")[:1]),
        model_number=Subquery(newest.values("model_version__number")[:1]),
        model_uid=Subquery(newest.values("model_version__uid")[:1]),
        calls=Coalesce(Subquery(calls, output_field=IntegerField()), 0),
    )


#: Neighbouring cards that are written as a range.
_SHORTEST_RANGE = 3


def replica_locations(replicas: Collection[Replica]) -> dict[str, tuple[str, ...]]:
    """The cards allocated to each replica, one ``node-1 · 0–3, 6`` a node, by the uid of its claim."""
    claims = [replica.claim_uid for replica in replicas if replica.claim_uid]
    rows = (
        Allocation.objects.filter(claim__uid__in=claims, released_at=None)
        .order_by("node__name", "card__index")
        .values_list("claim__uid", "node__name", "card__index")
    )
    cards: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for claim, node, index in rows:
        cards[claim][node].append(index)
    return {
        claim: tuple(f"{node} · {_format_indices(indices)}" for node, indices in nodes.items())
        for claim, nodes in cards.items()
    }


def _format_indices(indices: Sequence[int]) -> str:
    """Sorted numbers, from three neighbours on as a range: ``0–3, 6, 7``."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ", ".join(
        f"{run[0]}–{run[-1]}" if len(run) >= _SHORTEST_RANGE else ", ".join(map(str, run))
        for run in runs
    )


def replicas_with_logs(deployment: Deployment) -> QuerySet[Replica]:
    """The newest replicas, stopped ones included."""
    return (
        Replica.objects.filter(backend__revision__deployment=deployment)
        .select_related("backend__revision", "cluster")
        .order_by("-id")[:MAX_LOGGED_REPLICAS]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionChange:
    """One field in which two revisions differ; None where one of them does not set it."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionRow:
    revision: Revision
    #: Differences from the revision before it; empty for the first.
    changes: tuple[RevisionChange, ...]
    #: Differences of this revision from the newest one.
    rollback_changes: tuple[RevisionChange, ...]
    #: A route sends requests to it.
    serves: bool


def revision_settings(revision: Revision) -> dict[str, Any]:
    """All settings of a revision, flat, in display order."""
    return {
        "model_version": str(revision.model_version),
        "chips": " / ".join(revision.chips),
        "cards": revision.cards,
        "engine": revision.engine,
        "adapters": ", ".join(map(str, revision.adapters.all())) or None,
        **{name: value for name, value in sorted(revision.spec.items()) if value is not None},
    }


def revision_changes(before: Revision, after: Revision) -> tuple[RevisionChange, ...]:
    """Differences of the second revision from the first."""
    old, new = revision_settings(before), revision_settings(after)
    return tuple(
        RevisionChange(field=name, before=old.get(name), after=new.get(name))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    )


def revision_rows(deployment: Deployment) -> Sequence[RevisionRow]:
    """Its revisions, the newest first."""
    found = list(
        deployment.revisions.select_related("model_version__line", "created_by")
        .prefetch_related("adapters__model_version__line")
        .order_by("-number")
    )
    serving = set(
        RouteBackend.objects.filter(
            backend__revision__deployment=deployment, weight__gt=0
        ).values_list("backend__revision_id", flat=True)
    )
    earlier = [revision_changes(older, newer) for newer, older in pairwise(found)]
    return [
        RevisionRow(
            revision=revision,
            changes=changes,
            rollback_changes=revision_changes(found[0], revision),
            serves=revision.pk in serving,
        )
        for revision, changes in zip(found, [*earlier, ()], strict=True)
    ]


class DeploymentEventSubject(StrEnum):
    DEPLOYMENT = "deployment"
    REPLICA = "replica"


_TRANSITION_FIELDS = ("id", "at", "from_state", "event", "to_state", "reason", "actor")


def deployment_transitions(
    deployments: QuerySet[Deployment],
) -> tuple[QuerySet[DeploymentTransition], QuerySet[ReplicaTransition]]:
    """Transitions of the deployments and of their replicas; ``replica`` is the uid of the replica, or empty."""
    own = DeploymentTransition.objects.filter(entity__in=deployments)
    of_replicas = ReplicaTransition.objects.filter(
        entity__backend__revision__deployment__in=deployments
    )
    return own.annotate(replica=Value("")), of_replicas.annotate(replica=F("entity__uid"))


def deployment_events(deployment: Deployment) -> list[dict[str, Any]]:
    """Transitions of the deployment and of its replicas, the newest first; ``subject`` tells them apart."""
    rows: list[dict[str, Any]] = []
    transitions = deployment_transitions(Deployment.objects.filter(pk=deployment.pk))
    for subject, found in zip(DeploymentEventSubject, transitions, strict=True):
        newest = found.order_by("-id")[:MAX_EVENTS].values(*_TRANSITION_FIELDS, "replica")
        rows += ({**row, "subject": subject.value} for row in newest)
    rows.sort(key=lambda row: (row["at"], row["id"]), reverse=True)
    return rows[:MAX_EVENTS]


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
