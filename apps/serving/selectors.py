"""Questions about deployments; what gateways are told."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Prefetch, Q, QuerySet, Sum

from apps.accounts import selectors as accounts
from apps.serving.models import (
    ApiKey,
    Backend,
    Deployment,
    Gateway,
    GatewaySnapshot,
    Replica,
    Revision,
    Route,
    UsageRecord,
)
from controlplane.domain.serving import ReplicaState

OWNER_KIND = "replica"
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


def engine_key(replica: Replica) -> str:
    """What the replica's engine requires. Derived, not stored: rendering again gives the same."""
    key = settings.SECRET_KEY.encode()
    return hmac.new(key, f"replica:{replica.uid}".encode(), hashlib.sha256).hexdigest()


def keys_visible(user: accounts.Person) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(team__in=accounts.teams_of(user)).select_related(
        "team", "created_by"
    )


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
        queryset=Backend.objects.select_related("revision__model_version").prefetch_related(ready),
    )
    return (
        Route.objects.filter(deployment__deleted_at=None)
        .select_related("deployment__team")
        .prefetch_related("weights", backends)
        .order_by("name")
    )


def _route(route: Route) -> dict[str, Any]:
    weights = sorted(route.weights.all(), key=lambda weight: weight.pk)
    lengths = [weight.backend.revision.model_version.context_length for weight in weights]
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
                "model": route.name,
                "endpoints": [
                    {"uid": replica.uid, "url": replica.url, "credential": engine_key(replica)}
                    for replica in weight.backend.ready  # type: ignore[attr-defined]
                ],
            }
            for weight in weights
        ],
    }


def _valid_keys(at: datetime) -> QuerySet[ApiKey]:
    return (
        ApiKey.objects.filter(revoked_at=None)
        .filter(Q(expires_at=None) | Q(expires_at__gt=at))
        .select_related("team")
        .order_by("id")
    )


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
