"""Gateways: the snapshot that they serve from, which of them are up to date, and the API keys that they accept."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, F, Max, OuterRef, Prefetch, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, JSONObject

from apps.accounts import selectors as accounts
from apps.models import selectors as registry_selectors
from apps.serving.models import (
    AdapterRoute,
    ApiKey,
    Backend,
    Deployment,
    Gateway,
    GatewayCall,
    GatewaySnapshot,
    Replica,
    Revision,
    Route,
)
from controlplane.domain.serving.lifecycle import ReplicaState
from controlplane.domain.serving.model_kinds import Operation
from controlplane.ports import adapter_registry
from controlplane.ports.engines import VersionedEngine

#: A gateway that has not polled for this long no longer has a share of the rate limits.
GATEWAY_HEARTBEAT_TIMEOUT = timedelta(seconds=60)


def replica_engine_token(replica: Replica) -> str:
    """The bearer token that the replica's engine requires. Derived, not stored: rendering is deterministic."""
    key = settings.SECRET_KEY.encode()
    return hmac.new(key, f"replica:{replica.uid}".encode(), hashlib.sha256).hexdigest()


def live_gateway_count(*, at: datetime) -> int:
    return Gateway.objects.filter(last_seen_at__gt=at - GATEWAY_HEARTBEAT_TIMEOUT).count()


def latest_gateway_snapshot() -> GatewaySnapshot | None:
    return GatewaySnapshot.objects.order_by("-version").first()


def gateway_snapshot_newer_than(version: int) -> GatewaySnapshot | None:
    """The newest snapshot if its version is higher."""
    return GatewaySnapshot.objects.filter(version__gt=version).order_by("-version").first()


def gateway_snapshot_content(*, at: datetime) -> dict[str, Any]:
    """Routes, endpoints, keys and limits as they are now; in a stable order, so that it can be compared."""
    serving = _serving_backends()
    return {
        "gateways": max(1, live_gateway_count(at=at)),
        "routes": [
            document
            for route in _published_routes()
            for document in _route_documents(route, serving)
        ],
        "keys": [_key_document(key) for key in _valid_api_keys(at)],
    }


def _backends() -> QuerySet[Backend]:
    """Backends with their ready replicas in ``ready``."""
    ready = Prefetch(
        "replicas",
        queryset=Replica.objects.filter(state=ReplicaState.READY).order_by("id"),
        to_attr="ready",
    )
    return Backend.objects.select_related(
        "revision__model_version__line",
        "revision__model_version__artifact",
        "revision__model_version__catalog_model",
        "revision__deployment",
    ).prefetch_related(ready, "revision__adapters")


def _serving_backends() -> dict[int, list[Backend]]:
    """The backends with ready replicas of each deployment; several while a rollout is in progress."""
    found: dict[int, list[Backend]] = defaultdict(list)
    ready = Replica.objects.filter(state=ReplicaState.READY, backend=OuterRef("pk"))
    for backend in _backends().filter(Exists(ready)).order_by("id"):
        found[backend.revision.deployment_id].append(backend)
    return found


def _published_routes() -> QuerySet[Route]:
    backends = Prefetch("weights__backend", queryset=_backends())
    return (
        Route.objects.filter(deployment__deleted_at=None)
        .select_related("deployment__team")
        .prefetch_related("weights", backends, "deployment__adapter_routes")
        .order_by("name")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _WeightedBackend:
    """A backend in the document of a route."""

    backend: Backend
    weight: int


def _weighted_backends(
    route: Route, serving: Mapping[int, Sequence[Backend]]
) -> list[_WeightedBackend]:
    """The backends of the route with whole weights, relative to each other.

    While a rollout is in progress, the share of a deployment is divided among its revisions by their ready
    replicas, so that every ready replica gets the same share.
    """
    weights = sorted(route.weights.all(), key=lambda weight: weight.pk)
    shares = [
        (weight, serving.get(weight.backend.revision.deployment_id) or [weight.backend])
        for weight in weights
    ]
    ready = {
        weight.pk: sum(len(_ready_replicas(each)) for each in backends)
        for weight, backends in shares
        if len(backends) > 1
    }
    scale = math.lcm(*ready.values())
    found = []
    for weight, backends in shares:
        for backend in backends:
            share = weight.weight * scale
            if weight.pk in ready:
                share = share // ready[weight.pk] * len(_ready_replicas(backend))
            found.append(_WeightedBackend(backend=backend, weight=share))
    return found


def _ready_replicas(backend: Backend) -> Sequence[Replica]:
    replicas: Sequence[Replica] = backend.ready  # type: ignore[attr-defined] # prefetched so
    return replicas


def _route_documents(
    route: Route, serving: Mapping[int, Sequence[Backend]]
) -> list[dict[str, Any]]:
    """The route, and those of the adapters of its deployment."""
    weights = _weighted_backends(route, serving)
    adapters = [
        _adapter_route_document(adapter, route, weights)
        for adapter in route.deployment.adapter_routes.all()
    ]
    return [_route_document(route, weights), *adapters]


def _adapter_route_document(
    adapter: AdapterRoute, route: Route, weights: Sequence[_WeightedBackend]
) -> dict[str, Any]:
    """Requests go to the deployment's own backends whose revision has the adapter, by their ready replicas."""
    own = [
        each.backend
        for each in weights
        if each.backend.revision.deployment_id == adapter.deployment_id
        and adapter.name in {one.name for one in each.backend.revision.adapters.all()}
    ]
    return {
        "name": adapter.name,
        "team": route.deployment.team.uid,
        "context_length": min(
            (backend.revision.model_version.context_length for backend in own), default=0
        ),
        "operations": [operation.value for operation in _common_operations(own)],
        "ignored_parameters": _ignored_parameters(own),
        "created": int(adapter.created_at.timestamp()),
        "backends": [
            {
                "uid": backend.uid,
                "weight": len(_ready_replicas(backend)) if len(own) > 1 else 1,
                "model": _adapter_request_name(backend.revision, adapter.name),
                "endpoints": _endpoint_documents(backend),
            }
            for backend in own
        ],
    }


def _adapter_request_name(revision: Revision, adapter: str) -> str:
    """How requests to the engine name the adapter."""
    lora = (
        adapter_registry.engine_by_name(revision.engine).profile().lora
        if revision.engine in adapter_registry.engine_names()
        else None
    )
    form = lora.request_name if lora is not None else "{adapter}"
    return form.format(model=revision.deployment.name, adapter=adapter)


def _endpoint_documents(backend: Backend) -> list[dict[str, str]]:
    return [
        {"uid": replica.uid, "url": replica.url, "credential": replica_engine_token(replica)}
        for replica in _ready_replicas(backend)
    ]


def _route_document(route: Route, weights: Sequence[_WeightedBackend]) -> dict[str, Any]:
    # Backends with a share of the requests, or all of them if none has a share.
    offered = [each.backend for each in weights if each.weight]
    lengths = [backend.revision.model_version.context_length for backend in offered]
    return {
        "name": route.name,
        "team": route.deployment.team.uid,
        "context_length": min(lengths, default=0),
        "operations": [
            operation.value
            for operation in _common_operations(offered or [each.backend for each in weights])
        ],
        "ignored_parameters": _ignored_parameters(offered),
        "created": int(route.created_at.timestamp()),
        "backends": [
            {
                "uid": each.backend.uid,
                "weight": each.weight,
                # As the deployment's replicas are started; answers bear the route's name.
                "model": each.backend.revision.deployment.name,
                "endpoints": _endpoint_documents(each.backend),
            }
            for each in weights
        ],
    }


def _common_operations(backends: Sequence[Backend]) -> tuple[Operation, ...]:
    """What every one of the backends offers."""
    offered = [set(revision_operations(backend.revision)) for backend in backends]
    return _in_order(set.intersection(*offered) if offered else set())


def revision_operations(revision: Revision) -> tuple[Operation, ...]:
    """The operations of its model's kind that its engine offers; none if the engine is not installed."""
    if revision.engine not in adapter_registry.engine_names():
        return ()
    profile = adapter_registry.engine_by_name(revision.engine).profile()
    kind = registry_selectors.engine_model_facts(revision.model_version).kind
    return _in_order(profile.operations.get(kind, ()) if kind is not None else ())


def _ignored_parameters(backends: Sequence[Backend]) -> dict[str, dict[str, str]]:
    """Operation → parameter that a ready replica ignores → the first release that reads it.

    The gateway refuses requests with it.
    """
    found: dict[str, dict[str, str]] = {}
    for backend in backends:
        revision = backend.revision
        if revision.engine not in adapter_registry.engine_names():
            continue
        engine = adapter_registry.engine_by_name(revision.engine)
        if not isinstance(engine, VersionedEngine):
            continue
        # Images for Ascend may have another release than those for NVIDIA.
        for name in sorted({replica.chip for replica in _ready_replicas(backend)}):
            chip = adapter_registry.chip_by_name(name)
            if chip is None:
                continue
            for operation, parameters in engine.ignored_parameters(
                revision.spec, chip=chip
            ).items():
                found.setdefault(operation.value, {}).update(parameters)
    return found


def newest_operations(deployments: Sequence[Deployment]) -> dict[int, tuple[Operation, ...]]:
    """The operations of the revision that each should serve, as ``newest_revision``; one query."""
    newest = (
        Revision.objects.filter(deployment__in=deployments, failed_at=None)
        .select_related(
            "model_version__line", "model_version__artifact", "model_version__catalog_model"
        )
        .order_by("deployment_id", "-number")
        .distinct("deployment")
    )
    return {revision.deployment_id: revision_operations(revision) for revision in newest}


def _in_order(operations: Collection[Operation]) -> tuple[Operation, ...]:
    return tuple(operation for operation in Operation if operation in operations)


def _valid_api_keys(at: datetime) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(valid_api_keys_filter(at=at)).select_related("team").order_by("id")


def _key_document(key: ApiKey) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPropagation:
    """How many of the live gateways have a snapshot version, or a later one."""

    gateways: int
    updated: int
    #: Uids of replicas with open requests in one of the gateways, though its version no longer names them.
    draining: frozenset[str] = frozenset()

    @property
    def all(self) -> bool:
        return self.gateways > 0 and self.updated == self.gateways


def snapshot_propagation(*, version: int, at: datetime) -> SnapshotPropagation:
    """Live gateways, and those of them that have this snapshot version or a later one."""
    found = Gateway.objects.filter(last_seen_at__gt=at - GATEWAY_HEARTBEAT_TIMEOUT).values_list(
        "version", "draining_requests"
    )
    return SnapshotPropagation(
        gateways=len(found),
        updated=sum(has >= version for has, _ in found),
        draining=frozenset(uid for _, requests in found for uid in requests),
    )


def api_keys_visible(user: accounts.RequestUser) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(team__in=accounts.teams_visible(user)).select_related(
        "team", "created_by"
    )


def valid_api_keys_filter(*, at: datetime) -> Q:
    """Keys that are neither revoked nor expired."""
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=at))


DAY, MONTH = timedelta(days=1), timedelta(days=30)
#: Prefix of the names of keys that the playground creates.
PLAYGROUND_KEY_NAME = "playground"
#: Lifetime of such a key; its text is never shown.
PLAYGROUND_KEY_LIFETIME = timedelta(minutes=15)


class ApiKeyState(StrEnum):
    """States known to :func:`controlplane.web.state_badges.state_badge`."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


def api_key_state(key: ApiKey, *, at: datetime) -> ApiKeyState:
    if key.revoked_at is not None:
        return ApiKeyState.REVOKED
    if key.expires_at is not None and key.expires_at <= at:
        return ApiKeyState.EXPIRED
    return ApiKeyState.VALID


def playground_keys_filter() -> Q:
    """Keys created by the playground: by their name and their short lifetime."""
    short = Q(expires_at__lte=F("created_at") + PLAYGROUND_KEY_LIFETIME)
    return Q(name__startswith=PLAYGROUND_KEY_NAME) & short


def api_keys_with_usage(user: accounts.RequestUser, *, at: datetime) -> QuerySet[ApiKey]:
    """With ``last_used_at`` of each key, and ``recent_usage``: ``calls_day``, ``tokens_day``, ``calls_month`` and
    ``tokens_month`` up to ``at``, or None if it was not used for a month."""
    records = GatewayCall.objects.filter(key=OuterRef("pk")).order_by()
    day = Q(at__gt=at - DAY)
    tokens = F("prompt_tokens") + F("completion_tokens")
    recent_usage = (
        records.filter(at__gt=at - MONTH)
        .values("key")
        .annotate(
            totals=JSONObject(
                calls_day=Count("id", filter=day),
                tokens_day=Coalesce(Sum(tokens, filter=day), 0),
                calls_month=Count("id"),
                tokens_month=Coalesce(Sum(tokens), 0),
            )
        )
        .values("totals")
    )
    return api_keys_visible(user).annotate(
        last_used_at=Subquery(records.order_by("-at").values("at")[:1]),
        recent_usage=Subquery(recent_usage),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteUsage:
    """Calls of one deployment with one key within 30 days."""

    route: str
    calls: int
    #: Calls that ended in an error, those rejected by a limit included.
    failed: int
    tokens: int
    last_at: datetime


def api_key_usage_by_route(key: ApiKey, *, at: datetime) -> Sequence[RouteUsage]:
    """Usage of a key by route within 30 days, the most called first."""
    rows = (
        key.usage.filter(at__gt=at - MONTH)
        .order_by()
        .values("route")
        .annotate(
            calls=Count("id"),
            failed=Count("id", filter=Q(status__gte=400)),
            tokens=Coalesce(Sum(F("prompt_tokens") + F("completion_tokens")), 0),
            last_at=Max("at"),
        )
        .order_by("-calls", "route")
    )
    return [RouteUsage(**row) for row in rows]
