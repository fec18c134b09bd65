"""Keys of the gateway as people look at them: which work, who calls by them, and how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, JSONObject

from apps.accounts import selectors as accounts
from apps.serving import selectors
from apps.serving.models import ApiKey, Gateway, UsageRecord

DAY, MONTH = timedelta(days=1), timedelta(days=30)
#: What the names of keys begin with that the playground makes for itself.
PLAYGROUND_NAME = "playground"
#: How long such a key works; nobody ever sees its text.
PLAYGROUND_LIFETIME = timedelta(minutes=15)


class KeyState(StrEnum):
    """In the words of :func:`controlplane.web.states.look_of`."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


def key_state(key: ApiKey, *, at: datetime) -> KeyState:
    if key.revoked_at is not None:
        return KeyState.REVOKED
    if key.expires_at is not None and key.expires_at <= at:
        return KeyState.EXPIRED
    return KeyState.VALID


def of_playground() -> Q:
    """Keys that the playground made: by their name, and because they were short-lived from the start."""
    short = Q(expires_at__lte=F("created_at") + PLAYGROUND_LIFETIME)
    return Q(name__startswith=PLAYGROUND_NAME) & short


def keys_with_usage(user: accounts.Person, *, at: datetime) -> QuerySet[ApiKey]:
    """With ``last_used_at`` of each key, and ``lately``: ``calls_day``, ``tokens_day``, ``calls_month`` and
    ``tokens_month`` up to ``at``, or None if it was not used for a month."""
    records = UsageRecord.objects.filter(key=OuterRef("pk")).order_by()
    day = Q(at__gt=at - DAY)
    tokens = F("prompt_tokens") + F("completion_tokens")
    lately = (
        records.filter(at__gt=at - MONTH)
        .values("key")
        .annotate(
            figures=JSONObject(
                calls_day=Count("id", filter=day),
                tokens_day=Coalesce(Sum(tokens, filter=day), 0),
                calls_month=Count("id"),
                tokens_month=Coalesce(Sum(tokens), 0),
            )
        )
        .values("figures")
    )
    return selectors.keys_visible(user).annotate(
        last_used_at=Subquery(records.order_by("-at").values("at")[:1]),
        lately=Subquery(lately),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteUsage:
    """What one key called of one deployment within a month."""

    route: str
    calls: int
    #: Calls that ended in an error, refusals by a limit included.
    failed: int
    tokens: int
    last_at: datetime


def usage_by_route(key: ApiKey, *, at: datetime) -> Sequence[RouteUsage]:
    """The most called first."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """How many of the gateways that are up know of a snapshot."""

    gateways: int
    know: int

    @property
    def all(self) -> bool:
        return self.gateways > 0 and self.know == self.gateways


def gateways_heard(*, version: int, at: datetime) -> Heard:
    """``version`` is a snapshot's; whoever has a later one knows it too."""
    found = Gateway.objects.filter(last_seen_at__gt=at - selectors.GATEWAY_SILENCE).aggregate(
        gateways=Count("id"), know=Count("id", filter=Q(version__gte=version))
    )
    return Heard(**found)
