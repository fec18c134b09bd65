"""Who used what, and what it cost: the ledger summed by days, with what is held right now.

Days are read as they were rolled, except those of which records came since then: these are summed from their
records. All that, with what claims hold since their last record, is one statement, so that a claim which
ends meanwhile is counted once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from django.db.models import Count, DateField, DateTimeField, F, QuerySet, Sum, Value
from django.db.models.functions import Cast, TruncMonth

from apps.accounts import selectors as accounts
from apps.accounts.models import Team, User
from apps.quotas.models import Allocation, Queue, UsageDay
from apps.quotas.selectors.usage import (
    DAY_OF,
    UsageScope,
    days_touched,
    metered_from,
    rates,
    records_by_day,
    usage_scope,
)
from controlplane.domain.usage import Cost, Period, Span, cost_of

#: Days that a report may span.
LONGEST_REPORT = 366
#: What somebody used: (when, whom or what, chip) → card-microseconds.
Amounts = Mapping[tuple[date | None, Any, str], int]


class Grouping(StrEnum):
    TEAM = "team"
    QUEUE = "queue"
    PERSON = "person"
    CHIP = "chip"
    WORK = "work"


class Rhythm(StrEnum):
    """How the period is divided."""

    WHOLE = "whole"
    MONTH = "month"
    DAY = "day"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    """Where rows have what they are grouped by."""

    column: str
    #: The same seen from an allocation.
    held: str
    #: Names of the keys; None where the key is the name.
    names: Callable[[Sequence[Any]], Mapping[Any, str]] | None = None


def _team_names(keys: Sequence[Any]) -> Mapping[Any, str]:
    return dict(Team.objects.filter(pk__in=keys).values_list("pk", "name"))


def _queue_names(keys: Sequence[Any]) -> Mapping[Any, str]:
    return dict(Queue.objects.filter(pk__in=keys).values_list("pk", "name"))


def _person_names(keys: Sequence[Any]) -> Mapping[Any, str]:
    return dict(User.objects.filter(pk__in=keys).values_list("pk", "username"))


_KEYS: Mapping[Grouping, _Key] = {
    Grouping.TEAM: _Key(column="team_id", held="claim__team_id", names=_team_names),
    Grouping.QUEUE: _Key(column="queue_id", held="claim__queue_id", names=_queue_names),
    Grouping.PERSON: _Key(column="person_id", held="claim__person_id", names=_person_names),
    Grouping.CHIP: _Key(column="chip", held="card__chip"),
    Grouping.WORK: _Key(column="work_kind", held="claim__work_kind"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """What one of them used, of all chips together."""

    #: First day of the month, or the day; None for the whole period.
    when: date | None
    #: A name; empty where nobody is known to have asked for the work, or what it was.
    name: str
    card_microseconds: int
    cost: Cost
    #: Of all that was used, 0 to 1.
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """Rows by time, then those who used most first."""

    period: Period
    at: datetime
    rows: tuple[ReportRow, ...]
    card_microseconds: int
    cost: Cost
    #: Card-microseconds by chip, the most used first, in the period and on each of its days.
    chips: Mapping[str, int]
    days: Mapping[str, Mapping[date, int]]


def usage_report(
    user: accounts.Person, *, period: Period, by: Grouping, per: Rhythm, at: datetime
) -> UsageReport:
    """What they may see of it; ``at`` is when what is held now is counted to."""
    asked, priced = _asked(user, period, at=at), rates()
    amounts = _amounts(asked, by=by, per=per)
    by_day = _amounts(asked, by=Grouping.CHIP, per=Rhythm.DAY)
    days: dict[str, dict[date, int]] = defaultdict(dict)
    for (day, _, chip), amount in by_day.items():
        if day is not None:
            days[chip][day] = amount
    chips = {chip: sum(found.values()) for chip, found in days.items()}
    chips = dict(sorted(chips.items(), key=lambda pair: (-pair[1], pair[0])))
    return UsageReport(
        period=period,
        at=at,
        rows=_rows(amounts, by=by, priced=priced),
        card_microseconds=sum(chips.values()),
        cost=cost_of(chips, priced),
        chips=chips,
        days={chip: days[chip] for chip in chips},
    )


def _rows(
    amounts: Amounts, *, by: Grouping, priced: Mapping[str, Decimal]
) -> tuple[ReportRow, ...]:
    used: dict[tuple[date | None, Any], dict[str, int]] = defaultdict(dict)
    for (when, key, chip), amount in amounts.items():
        used[when, key][chip] = amount
    total = sum(amounts.values())
    naming = _KEYS[by].names
    names = naming(sorted({key for _, key in used if key is not None})) if naming else {}
    rows = (
        ReportRow(
            when=when,
            name=names.get(key, "") if naming else key,
            card_microseconds=sum(chips.values()),
            cost=cost_of(chips, priced),
            share=sum(chips.values()) / total,
        )
        for (when, key), chips in used.items()
    )
    return tuple(
        sorted(rows, key=lambda row: (row.when or date.min, -row.card_microseconds, row.name))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Whose use, when, and which days of it have to be read from their records."""

    scope: UsageScope
    period: Period
    touched: Sequence[date]
    at: datetime


def _asked(user: accounts.Person, period: Period, *, at: datetime) -> _Asked:
    # Today too: a claim may end before its record is looked for.
    days = {*days_touched(), Span(since=at, until=at).day}
    touched = sorted(day for day in days if period.first <= day <= period.last)
    return _Asked(scope=usage_scope(user), period=period, touched=touched, at=at)


def _amounts(asked: _Asked, *, by: Grouping, per: Rhythm) -> Amounts:
    found: dict[tuple[date | None, Any, str], int] = defaultdict(int)
    for when, since, key, chip, amount in _read(asked, by=by, per=per):
        if since is None:
            found[when, key, chip] += amount
            continue
        held = asked.period.span.within(Span(since=since, until=asked.at))
        for piece in held.by_day():
            found[_bucket(per, piece.day), key, chip] += amount * piece.microseconds
    return found


def _read(asked: _Asked, *, by: Grouping, per: Rhythm) -> QuerySet[Any, tuple[Any, ...]]:
    """(when, since, key, chip, amount): sums of card-microseconds; where there is a ``since``, cards held."""
    key, scope = _KEYS[by], asked.scope
    days = (asked.period.first, asked.period.last)
    rolled = UsageDay.objects.filter(scope.over(), day__range=days)
    rolled = rolled.exclude(day__in=asked.touched)
    records = records_by_day(asked.touched).filter(scope.over())
    held = Allocation.objects.filter(scope.over("claim__"), released_at=None)
    never, nowhen = Cast(Value(None), DateTimeField()), Cast(Value(None), DateField())
    summed = Sum("card_microseconds")
    return (
        rolled.order_by()
        .values_list(_when(per, F("day")), never, key.column, "chip")
        .annotate(amount=summed)
        .union(
            records.order_by()
            .values_list(_when(per, DAY_OF), never, key.column, "chip")
            .annotate(amount=summed),
            held.order_by()
            .values_list(nowhen, metered_from("claim__"), key.held, "card__chip")
            .annotate(amount=Count("id")),
            all=True,
        )
    )


def _when(per: Rhythm, day: Any) -> Any:
    if per is Rhythm.WHOLE:
        return Cast(Value(None), DateField())
    return day if per is Rhythm.DAY else TruncMonth(day, output_field=DateField())


def _bucket(per: Rhythm, day: date) -> date | None:
    if per is Rhythm.WHOLE:
        return None
    return day if per is Rhythm.DAY else day.replace(day=1)
