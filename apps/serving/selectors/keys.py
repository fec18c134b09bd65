"""API keys of the gateway: their state, and what was called with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, JSONObject

from apps.accounts import selectors as accounts
from apps.serving.models import (
    ApiKey,
    UsageRecord,
)


def keys_visible(user: accounts.RequestUser) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(team__in=accounts.teams_of(user)).select_related(
        "team", "created_by"
    )


def valid_keys_filter(*, at: datetime) -> Q:
    """Keys that are neither revoked nor expired."""
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=at))


DAY, MONTH = timedelta(days=1), timedelta(days=30)
#: Prefix of the names of keys that the playground creates.
PLAYGROUND_KEY_NAME = "playground"
#: Lifetime of such a key; its text is never shown.
PLAYGROUND_KEY_LIFETIME = timedelta(minutes=15)


class KeyState(StrEnum):
    """States known to :func:`controlplane.web.state_badges.state_badge`."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


def key_state(key: ApiKey, *, at: datetime) -> KeyState:
    if key.revoked_at is not None:
        return KeyState.REVOKED
    if key.expires_at is not None and key.expires_at <= at:
        return KeyState.EXPIRED
    return KeyState.VALID


def playground_keys_filter() -> Q:
    """Keys created by the playground: by their name and their short lifetime."""
    short = Q(expires_at__lte=F("created_at") + PLAYGROUND_KEY_LIFETIME)
    return Q(name__startswith=PLAYGROUND_KEY_NAME) & short


def keys_with_usage(user: accounts.RequestUser, *, at: datetime) -> QuerySet[ApiKey]:
    """With ``last_used_at`` of each key, and ``recent_usage``: ``calls_day``, ``tokens_day``, ``calls_month`` and
    ``tokens_month`` up to ``at``, or None if it was not used for a month."""
    records = UsageRecord.objects.filter(key=OuterRef("pk")).order_by()
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
    return keys_visible(user).annotate(
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


def usage_by_route(key: ApiKey, *, at: datetime) -> Sequence[RouteUsage]:
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
