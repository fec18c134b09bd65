"""Usage through the gateway: totals, and the recent calls of a deployment in steps of equal length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import (
    Aggregate,
    Count,
    DateTimeField,
    DurationField,
    F,
    FloatField,
    Func,
    Max,
    Q,
    QuerySet,
    Sum,
    Value,
)
from django.db.models.functions import Coalesce

from apps.accounts import selectors as accounts
from apps.serving.models import (
    Deployment,
    GatewayCall,
)


def usage_visible(user: accounts.RequestUser) -> QuerySet[GatewayCall]:
    return GatewayCall.objects.filter(team__in=accounts.teams_visible(user)).select_related(
        "key", "team"
    )


def usage_totals(records: QuerySet[GatewayCall]) -> dict[str, int]:
    """Calls and tokens of those records."""
    totals = records.aggregate(
        calls=Count("id"), prompt=Sum("prompt_tokens"), completion=Sum("completion_tokens")
    )
    return {
        "calls": totals["calls"],
        "prompt_tokens": totals["prompt"] or 0,
        "completion_tokens": totals["completion"] or 0,
    }


#: Outcomes that are no failure of the service: answered, or aborted by the client.
_SUCCESSFUL = ("ok", "aborted")


class UsageWindow(StrEnum):
    """A time range that ends now."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"

    @property
    def length(self) -> timedelta:
        return self.step * self.steps

    @property
    def step(self) -> timedelta:
        return _STEPS[self][0]

    @property
    def steps(self) -> int:
        return _STEPS[self][1]


_STEPS = {
    UsageWindow.HOUR: (timedelta(minutes=1), 60),
    UsageWindow.DAY: (timedelta(minutes=30), 48),
    UsageWindow.MONTH: (timedelta(days=1), 30),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStatistics:
    """Statistics of a set of calls. Times are in milliseconds, and None where none was measured."""

    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    #: Time to first token of streamed calls: median and 95th percentile.
    median_first_token_ms: float | None = None
    p95_first_token_ms: float | None = None
    #: Time to the last byte of a response: median.
    median_duration_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageInterval:
    at: datetime
    statistics: CallStatistics


class _Percentile(Aggregate):
    template = "percentile_cont(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


def deployment_calls(
    deployment: Deployment, *, user: accounts.RequestUser
) -> QuerySet[GatewayCall]:
    """Calls of this deployment and its adapters, without those of an earlier one of the same name."""
    adapters = deployment.adapter_routes.values_list("name", flat=True)
    return GatewayCall.objects.filter(
        team__in=accounts.teams_visible(user),
        route__in=[deployment.name, *adapters],
        at__gte=deployment.created_at,
    ).order_by()


def last_call_at(records: QuerySet[GatewayCall]) -> datetime | None:
    found: datetime | None = records.aggregate(last=Max("at"))["last"]
    return found


def usage_window(last: datetime | None, *, at: datetime) -> UsageWindow:
    """The shortest window that contains a call at ``last``; an hour if there was none."""
    if last is None:
        return UsageWindow.HOUR
    fitting = (window for window in UsageWindow if at - last < window.length)
    return next(fitting, UsageWindow.MONTH)


def call_statistics(records: QuerySet[GatewayCall], *, since: datetime) -> CallStatistics:
    return CallStatistics(**records.filter(at__gte=since).aggregate(**_usage_aggregates()))


def usage_steps(
    records: QuerySet[GatewayCall], *, window: UsageWindow, at: datetime
) -> Sequence[UsageInterval]:
    """Every step of the window up to ``at``, also those without a call."""
    first_step_at = _first_step_at(window, at=at)
    binned = Func(
        Value(window.step, output_field=DurationField()),
        F("at"),
        Value(first_step_at, output_field=DateTimeField()),
        function="date_bin",
        output_field=DateTimeField(),
    )
    rows: Iterable[Mapping[str, Any]] = (
        records.filter(at__gte=first_step_at, at__lte=at)
        .annotate(step=binned)
        .values("step")
        .annotate(**_usage_aggregates())
    )
    found = {
        row["step"]: CallStatistics(**{name: row[name] for name in _usage_aggregates()})
        for row in rows
    }
    instants = [first_step_at + window.step * number for number in range(window.steps)]
    return [UsageInterval(at=one, statistics=found.get(one, CallStatistics())) for one in instants]


def _first_step_at(window: UsageWindow, *, at: datetime) -> datetime:
    """Start of the first step, aligned to minutes, half-hours or days of ``at``'s zone."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    last = day + window.step * ((at - day) // window.step)
    return last - window.step * (window.steps - 1)


def _usage_aggregates() -> dict[str, Any]:
    successful = Q(outcome__in=_SUCCESSFUL)
    streamed = successful & Q(first_token_ms__isnull=False)
    return {
        "calls": Count("id"),
        "failed": Count("id", filter=~successful),
        "input_tokens": Coalesce(Sum("prompt_tokens"), 0),
        "output_tokens": Coalesce(Sum("completion_tokens"), 0),
        "median_first_token_ms": _Percentile("first_token_ms", share="0.5", filter=streamed),
        "p95_first_token_ms": _Percentile("first_token_ms", share="0.95", filter=streamed),
        "median_duration_ms": _Percentile("duration_ms", share="0.5", filter=successful),
    }
