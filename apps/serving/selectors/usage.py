"""How a deployment was called lately, in steps of equal length."""

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
from apps.serving.models import Deployment, UsageRecord

#: Outcomes that are nobody's failure here: answered, or the caller left before the end.
_WELL = ("ok", "aborted")


class Window(StrEnum):
    """How far back one looks."""

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
    Window.HOUR: (timedelta(minutes=1), 60),
    Window.DAY: (timedelta(minutes=30), 48),
    Window.MONTH: (timedelta(days=1), 30),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of some calls. Times are in milliseconds, and None where none was measured."""

    calls: int = 0
    failed: int = 0
    tokens_read: int = 0
    tokens_written: int = 0
    #: To the first token, of calls that were streamed: the middle one, and that of the slowest twentieth.
    median_first_ms: float | None = None
    slow_first_ms: float | None = None
    #: To the last byte of an answer: the middle one.
    median_whole_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    at: datetime
    figures: Figures


class _Percentile(Aggregate):
    template = "percentile_cont(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


def calls_of(deployment: Deployment, *, user: accounts.Person) -> QuerySet[UsageRecord]:
    """Calls of this deployment, not of an earlier one of its name."""
    return UsageRecord.objects.filter(
        team__in=accounts.teams_of(user),
        route=deployment.name,
        at__gte=deployment.created_at,
    ).order_by()


def last_call_at(records: QuerySet[UsageRecord]) -> datetime | None:
    found: datetime | None = records.aggregate(last=Max("at"))["last"]
    return found


def window_of(last: datetime | None, *, at: datetime) -> Window:
    """The shortest window that a call at ``last`` is in; an hour if there was none."""
    if last is None:
        return Window.HOUR
    fitting = (window for window in Window if at - last < window.length)
    return next(fitting, Window.MONTH)


def figures_since(records: QuerySet[UsageRecord], *, since: datetime) -> Figures:
    return Figures(**records.filter(at__gte=since).aggregate(**_measures()))


def steps_of(records: QuerySet[UsageRecord], *, window: Window, at: datetime) -> Sequence[Step]:
    """Every step of the window up to ``at``, also those without a call."""
    begins = _begins(window, at=at)
    binned = Func(
        Value(window.step, output_field=DurationField()),
        F("at"),
        Value(begins, output_field=DateTimeField()),
        function="date_bin",
        output_field=DateTimeField(),
    )
    rows: Iterable[Mapping[str, Any]] = (
        records.filter(at__gte=begins, at__lte=at)
        .annotate(step=binned)
        .values("step")
        .annotate(**_measures())
    )
    found = {row["step"]: Figures(**{name: row[name] for name in _measures()}) for row in rows}
    instants = [begins + window.step * number for number in range(window.steps)]
    return [Step(at=one, figures=found.get(one, Figures())) for one in instants]


def _begins(window: Window, *, at: datetime) -> datetime:
    """So that the last step ends after ``at``; steps begin at whole minutes, half-hours, days of ``at``'s zone."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    last = day + window.step * ((at - day) // window.step)
    return last - window.step * (window.steps - 1)


def _measures() -> dict[str, Any]:
    good = Q(outcome__in=_WELL)
    streamed = good & Q(first_token_ms__isnull=False)
    return {
        "calls": Count("id"),
        "failed": Count("id", filter=~good),
        "tokens_read": Coalesce(Sum("prompt_tokens"), 0),
        "tokens_written": Coalesce(Sum("completion_tokens"), 0),
        "median_first_ms": _Percentile("first_token_ms", share="0.5", filter=streamed),
        "slow_first_ms": _Percentile("first_token_ms", share="0.95", filter=streamed),
        "median_whole_ms": _Percentile("duration_ms", share="0.5", filter=good),
    }
