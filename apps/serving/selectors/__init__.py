"""Questions about deployments; what gateways are told."""

from __future__ import annotations

import hashlib
import hmac
import itertools
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Prefetch, Q, QuerySet, Sum

from apps.accounts import selectors as accounts
from apps.fleet import selectors as fleet
from apps.fleet.models import Node
from apps.jobs import selectors as jobs
from apps.quotas.models import Allocation
from apps.serving.models import (
    ApiKey,
    Backend,
    Deployment,
    Gateway,
    GatewaySnapshot,
    Replica,
    Revision,
    Route,
    RouteBackend,
    UsageRecord,
)
from controlplane.domain.serving import ReplicaState
from controlplane.ports.clusters import ClusterError, LogChunk
from controlplane.ports.engines import ROLES, Task

OWNER_KIND = "replica"
#: What people know its claims as.
WORK_KIND = "deployment"
#: A gateway that has not asked for this long no longer takes a share of the limits.
GATEWAY_SILENCE = timedelta(seconds=60)
LIVE_REPLICAS = tuple(state for state in ReplicaState if state is not ReplicaState.STOPPED)


def deployments_visible(user: accounts.Person) -> QuerySet[Deployment]:
    return (
        Deployment.objects.filter(team__in=accounts.teams_of(user), deleted_at=None)
        .select_related("team", "created_by", "queue", "route")
        .annotate(
            ready_replicas=Count(
                "revisions__backends__replicas",
                filter=Q(revisions__backends__replicas__state=ReplicaState.READY),
            )
        )
    )


def newest_revision(deployment: Deployment) -> Revision:
    return deployment.revisions.select_related(
        "model_version__line", "model_version__artifact"
    ).order_by("-number")[0]


def live_replicas(deployment: Deployment) -> QuerySet[Replica]:
    return Replica.objects.filter(
        backend__revision__deployment=deployment, state__in=LIVE_REPLICAS
    ).select_related("backend__revision", "cluster")


def backends_serving(deployment: Deployment) -> set[int]:
    """Primary keys of its backends that callers reach now, by its own route or another."""
    weights = RouteBackend.objects.filter(backend__revision__deployment=deployment, weight__gt=0)
    return set(weights.values_list("backend", flat=True))


def engine_key(replica: Replica) -> str:
    """What the replica's engine requires. Derived, not stored: rendering again gives the same."""
    key = settings.SECRET_KEY.encode()
    return hmac.new(key, f"replica:{replica.uid}".encode(), hashlib.sha256).hexdigest()


def keys_visible(user: accounts.Person) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(team__in=accounts.teams_of(user)).select_related(
        "team", "created_by"
    )


def key_works(*, at: datetime) -> Q:
    """Neither revoked nor expired."""
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=at))


def live_gateways(*, at: datetime) -> int:
    return Gateway.objects.filter(last_seen_at__gt=at - GATEWAY_SILENCE).count()


def latest_snapshot() -> GatewaySnapshot | None:
    return GatewaySnapshot.objects.order_by("-version").first()


def snapshot_content(*, at: datetime) -> dict[str, Any]:
    """Routes, endpoints, keys and limits as they are now; in a stable order, so that it can be compared."""
    return {
        "gateways": max(1, live_gateways(at=at)),
        "routes": [_route(route) for route in _routes()],
        "keys": [_key(key) for key in _valid_keys(at)],
    }


def _routes() -> QuerySet[Route]:
    ready = Prefetch(
        "replicas",
        queryset=Replica.objects.filter(state=ReplicaState.READY).order_by("id"),
        to_attr="ready",
    )
    backends = Prefetch(
        "weights__backend",
        queryset=Backend.objects.select_related(
            "revision__model_version", "revision__deployment"
        ).prefetch_related(ready),
    )
    return (
        Route.objects.filter(deployment__deleted_at=None)
        .select_related("deployment__team")
        .prefetch_related("weights", backends)
        .order_by("name")
    )


def _route(route: Route) -> dict[str, Any]:
    weights = sorted(route.weights.all(), key=lambda weight: weight.pk)
    lengths = [
        weight.backend.revision.model_version.context_length for weight in weights if weight.weight
    ]
    return {
        "name": route.name,
        "team": route.deployment.team.uid,
        "context_length": min(lengths, default=0),
        "operations": ["chat", "completions"],
        "created": int(route.created_at.timestamp()),
        "backends": [
            {
                "uid": weight.backend.uid,
                "weight": weight.weight,
                # As the deployment's replicas are started; answers bear the route's name.
                "model": weight.backend.revision.deployment.name,
                "endpoints": [
                    {"uid": replica.uid, "url": replica.url, "credential": engine_key(replica)}
                    for replica in weight.backend.ready  # type: ignore[attr-defined] # prefetched so
                ],
            }
            for weight in weights
        ],
    }


def _valid_keys(at: datetime) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(key_works(at=at)).select_related("team").order_by("id")


def _key(key: ApiKey) -> dict[str, Any]:
    return {
        "digest": key.digest,
        "uid": key.uid,
        "team": key.team.uid,
        "routes": key.routes,
        "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        "requests_per_minute": key.requests_per_minute,
        "tokens_per_minute": key.tokens_per_minute,
        "concurrency": key.concurrency,
    }


def usage_visible(user: accounts.Person) -> QuerySet[UsageRecord]:
    return UsageRecord.objects.filter(team__in=accounts.teams_of(user)).select_related(
        "key", "team"
    )


def usage_totals(records: QuerySet[UsageRecord]) -> dict[str, int]:
    """Calls and tokens of those records."""
    totals = records.aggregate(
        calls=Count("id"), prompt=Sum("prompt_tokens"), completion=Sum("completion_tokens")
    )
    return {
        "calls": totals["calls"],
        "prompt_tokens": totals["prompt"] or 0,
        "completion_tokens": totals["completion"] or 0,
    }


def route_name_free(wanted: str) -> str:
    """``wanted``, or with the first number behind it that makes a name nobody serves under."""
    taken = set(Route.objects.filter(name__startswith=wanted).values_list("name", flat=True))
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in itertools.count(1))
    return next(name for name in names if name not in taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a card; no address where they may not look."""

    #: ``job`` or ``deployment``.
    kind: str
    name: str
    uid: str


def card_holders(
    user: accounts.Person, *, nodes: Collection[Node] | None = None
) -> dict[int, Holder]:
    """Who holds each card that is held, of those nodes if they are given, by the card's primary key."""
    rows = Allocation.objects.filter(released_at=None)
    held = list(
        (rows if nodes is None else rows.filter(node__in=nodes)).values_list(
            "card_id", "claim__owner_kind", "claim__owner_uid", "claim__team__name"
        )
    )
    owners = {(kind, uid) for _, kind, uid, _ in held}
    known = _job_holders(owners, user) | _deployment_holders(owners, user)
    return {
        card: known.get((kind, uid)) or Holder(kind=kind, name=team, uid="")
        for card, kind, uid, team in held
    }


Owner = tuple[str, str]


def _job_holders(owners: set[Owner], user: accounts.Person) -> dict[Owner, Holder]:
    uids = [uid for kind, uid in owners if kind == jobs.OWNER_KIND]
    rows = jobs.jobs_visible(user).filter(attempts__uid__in=uids)
    return {
        (jobs.OWNER_KIND, attempt): Holder(kind="job", name=name, uid=uid)
        for attempt, name, uid in rows.values_list("attempts__uid", "name", "uid")
    }


def _deployment_holders(owners: set[Owner], user: accounts.Person) -> dict[Owner, Holder]:
    uids = [uid for kind, uid in owners if kind == OWNER_KIND]
    path = "backend__revision__deployment"
    rows = Replica.objects.filter(
        uid__in=uids, **{f"{path}__team__in": accounts.teams_of(user)}
    ).values_list("uid", f"{path}__name", f"{path}__uid")
    return {
        (OWNER_KIND, replica): Holder(kind="deployment", name=name, uid=uid)
        for replica, name, uid in rows
    }


def revisions_of(deployment: Deployment) -> QuerySet[Revision]:
    """Its revisions, the newest first, with ``live`` replicas at each of their backends."""
    live = Prefetch(
        "replicas",
        queryset=Replica.objects.filter(state__in=LIVE_REPLICAS).order_by("id"),
        to_attr="live",
    )
    backends = Prefetch("backends", queryset=Backend.objects.prefetch_related(live))
    return (
        deployment.revisions.select_related("model_version__line", "created_by")
        .prefetch_related(backends)
        .order_by("-number")
    )


def replicas_visible(user: accounts.Person) -> QuerySet[Replica]:
    return Replica.objects.filter(
        backend__revision__deployment__team__in=accounts.teams_of(user)
    ).select_related("backend__revision__deployment__team", "cluster")


def replica_log(replica: Replica, *, offset: int, limit: int) -> LogChunk:
    """Up to ``limit`` bytes of its present run from ``offset``; negative counts from the end."""
    ended = replica.state == ReplicaState.STOPPED
    if replica.cluster is None:
        return LogChunk(content=b"", next_offset=0, complete=ended)
    adapter = fleet.cluster_adapter(replica.cluster)
    role = ROLES[Task.SERVE]
    try:
        return adapter.log(replica.launch_name, role=role, index=0, offset=offset, limit=limit)
    except ClusterError:
        return LogChunk(content=b"", next_offset=max(0, offset), complete=False)


def snapshot_newer_than(version: int) -> GatewaySnapshot | None:
    """The newest snapshot if its version is higher."""
    return GatewaySnapshot.objects.filter(version__gt=version).order_by("-version").first()
