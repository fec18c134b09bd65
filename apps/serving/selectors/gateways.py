"""Gateways: the snapshot that they serve from, and which of them are up to date."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Prefetch, Q, QuerySet

from apps.serving.models import (
    ApiKey,
    Backend,
    Gateway,
    GatewaySnapshot,
    Replica,
    Route,
)
from apps.serving.selectors.keys import valid_keys_filter
from controlplane.domain.serving.lifecycle import ReplicaState

#: A gateway that has not polled for this long no longer has a share of the rate limits.
GATEWAY_HEARTBEAT_TIMEOUT = timedelta(seconds=60)


def engine_credential(replica: Replica) -> str:
    """The bearer token that the replica's engine requires. Derived, not stored: rendering is deterministic."""
    key = settings.SECRET_KEY.encode()
    return hmac.new(key, f"replica:{replica.uid}".encode(), hashlib.sha256).hexdigest()


def live_gateways(*, at: datetime) -> int:
    return Gateway.objects.filter(last_seen_at__gt=at - GATEWAY_HEARTBEAT_TIMEOUT).count()


def latest_snapshot() -> GatewaySnapshot | None:
    return GatewaySnapshot.objects.order_by("-version").first()


def snapshot_newer_than(version: int) -> GatewaySnapshot | None:
    """The newest snapshot if its version is higher."""
    return GatewaySnapshot.objects.filter(version__gt=version).order_by("-version").first()


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
                    {
                        "uid": replica.uid,
                        "url": replica.url,
                        "credential": engine_credential(replica),
                    }
                    for replica in weight.backend.ready  # type: ignore[attr-defined] # prefetched so
                ],
            }
            for weight in weights
        ],
    }


def _valid_keys(at: datetime) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(valid_keys_filter(at=at)).select_related("team").order_by("id")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPropagation:
    """How many of the live gateways have a snapshot version, or a later one."""

    gateways: int
    updated: int

    @property
    def all(self) -> bool:
        return self.gateways > 0 and self.updated == self.gateways


def snapshot_propagation(*, version: int, at: datetime) -> SnapshotPropagation:
    """Live gateways, and those of them that have this snapshot version or a later one."""
    found = Gateway.objects.filter(last_seen_at__gt=at - GATEWAY_HEARTBEAT_TIMEOUT).aggregate(
        gateways=Count("id"), updated=Count("id", filter=Q(version__gte=version))
    )
    return SnapshotPropagation(**found)
