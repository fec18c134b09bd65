"""The usage ledger: visible records, days to roll up, discrepancies, and usage reports.

A report reads days as they were rolled up, except those with newer records, which are summed from their records.
This, and the usage of claims since their last record, is one statement, so that a claim that ends meanwhile is
counted once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from django.db.models import (
    Count,
    DateField,
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    F,
    Max,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
)
from django.db.models.functions import Cast, Coalesce, TruncDate, TruncMonth

from apps.accounts import selectors as accounts
from apps.accounts.models import Team, User
from apps.quotas.models import Allocation, CardRate, Claim, Queue, UsageDay, UsageRecord
from apps.quotas.selectors.queues import queue_visibility_of
from controlplane.domain.common.reasons import Reason
from controlplane.domain.quotas.card_hours import (
    DAY,
    MICROSECOND,
    Cost,
    DayRange,
    TimeSpan,
    cost_of,
    midnight_of,
)
from controlplane.domain.quotas.claims import ClaimState

#: Maximum duration of a transaction that records usage: records may become visible that late.
MAX_TRANSACTION_TIME = timedelta(minutes=10)
#: The day of a record.
RECORD_DAY = TruncDate("since", tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageScope:
    """Whose usage a user sees: that of their teams, and that of all teams in queues that they manage."""

    #: Everything: for company administrators.
    everything: bool = False
    teams: QuerySet[Team] = field(default_factory=Team.objects.none)
    #: Primary keys of queues.
    queues: frozenset[int] = frozenset()

    def over(self, path: str = "") -> Q:
        """A filter for rows whose queue and team are at that path."""
        if self.everything:
            return Q()
        seen = Q(**{f"{path}team__in": self.teams})
        return seen | Q(**{f"{path}queue__in": self.queues}) if self.queues else seen


def usage_scope(user: accounts.RequestUser) -> UsageScope:
    """The user's teams; for queue admins also their teams' queues and those below; everything for the company."""
    if accounts.is_company_administrator(user):
        return UsageScope(everything=True)
    visibility = queue_visibility_of(user, Queue.objects.all())
    return UsageScope(teams=accounts.teams_visible(user), queues=visibility.managed)


def usage_records_visible(user: accounts.RequestUser) -> QuerySet[UsageRecord]:
    """Records of the ledger that the user may see."""
    rows = UsageRecord.objects.filter(usage_scope(user).over())
    return rows.select_related("queue", "team", "user", "claim")


def usage_days_visible(user: accounts.RequestUser) -> QuerySet[UsageDay]:
    """Daily sums that the user may see, as of the last roll-up."""
    rows = UsageDay.objects.filter(usage_scope(user).over())
    return rows.select_related("queue", "team", "user")


def usage_days_to_roll_up() -> list[date]:
    """Days (UTC) with records since the last roll-up, or shortly before it, which it may have missed."""
    rolled = UsageDay.objects.aggregate(at=Max("rolled_at"))["at"]
    rows = UsageRecord.objects.order_by()
    if rolled is not None:
        rows = rows.filter(recorded_at__gt=rolled - MAX_TRANSACTION_TIME)
    return sorted(rows.values_list(RECORD_DAY, flat=True).distinct())


def usage_records_of_days(days: Sequence[date]) -> QuerySet[UsageRecord]:
    chosen = Q(pk__in=())
    for day in days:
        chosen |= Q(since__gte=midnight_of(day), since__lt=midnight_of(day) + DAY)
    return UsageRecord.objects.filter(chosen)


def card_rates() -> dict[str, Decimal]:
    """Price of a card-hour by chip, without chips that have no rate."""
    return dict(CardRate.objects.values_list("chip", "per_hour"))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeteredUsage:
    """Usage of a job or a deployment, including current allocations."""

    card_microseconds: int
    cost: Cost


def metered_usage_of_workload(uid: str, *, at: datetime) -> MeteredUsage | None:
    """Usage of all claims of that workload; None if it never had a card. Takes three statements."""
    used: dict[str, int] = {}
    for chip, amount in (
        UsageRecord.objects.filter(work_uid=uid)
        .order_by()
        .values_list("chip")
        .annotate(Sum("card_microseconds"))
    ):
        used[chip] = amount
    for chip, since, cards in (
        Allocation.objects.filter(claim__work_uid=uid, released_at=None)
        .order_by()
        .values_list("card__chip", unrecorded_usage_start("claim__"))
        .annotate(Count("id"))
    ):
        amount = cards * max(0, TimeSpan(since=since, until=at).microseconds)
        used[chip] = used.get(chip, 0) + amount
    if not used:
        return None
    return MeteredUsage(card_microseconds=sum(used.values()), cost=cost_of(used, card_rates()))


def unrecorded_usage_start(path: str = "") -> Coalesce:
    """Start of the usage of a claim that is not in the ledger yet."""
    return Coalesce(f"{path}metered_until", f"{path}admitted_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerDiscrepancy:
    """A claim whose ledger records differ from its allocations, in card-microseconds."""

    claim: str
    recorded: int
    allocated: int

    def __str__(self) -> str:
        return Reason(
            "usage.ledger.claim_discrepancy",
            "claim {claim}: {recorded} card-microseconds are recorded, and "
            "{allocated} were allocated",
            claim=self.claim,
            recorded=self.recorded,
            allocated=self.allocated,
        )


def usage_discrepancies(*, since: datetime | None = None) -> list[LedgerDiscrepancy]:
    """Claims whose records do not add up to their allocations, to the microsecond.

    Of a running claim, only the part that should be recorded already is compared. With ``since``, only claims that
    had cards after that are compared.
    """
    ended = Coalesce("released_at", unrecorded_usage_start("claim__"), output_field=DateTimeField())
    lasted = ExpressionWrapper(ended - F("allocated_at"), output_field=DurationField())
    allocated = Allocation.objects.filter(claim=OuterRef("pk")).order_by().values("claim")
    recorded = UsageRecord.objects.filter(claim=OuterRef("pk")).order_by().values("claim")
    claims = Claim.objects.exclude(admitted_at=None).order_by("pk")
    if since is not None:
        claims = claims.filter(Q(released_at__gt=since) | ~Q(state=ClaimState.RELEASED))
    rows = claims.values_list(
        "uid",
        Subquery(recorded.annotate(sum=Sum("card_microseconds")).values("sum")),
        Subquery(allocated.annotate(sum=Sum(lasted)).values("sum"), output_field=DurationField()),
    )
    found = (
        LedgerDiscrepancy(
            claim=uid, recorded=amount or 0, allocated=(time or timedelta()) // MICROSECOND
        )
        for uid, amount, time in rows.iterator()
    )
    return [one for one in found if one.recorded != one.allocated]


#: Maximum days of a report.
MAX_REPORT_DAYS = 366
#: Usage: (time, group key, chip) → card-microseconds.
Amounts = Mapping[tuple[date | None, Any, str], int]


class UsageReportGrouping(StrEnum):
    TEAM = "team"
    QUEUE = "queue"
    USER = "user"
    CHIP = "chip"
    WORK = "work"


class UsageReportInterval(StrEnum):
    WHOLE = "whole"
    MONTH = "month"
    DAY = "day"


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupColumns:
    column: str
    #: The same column from an allocation.
    allocated: str
    #: Model and field of the names of keys; None if the key is the name.
    names: tuple[type[Model], str] | None = None


_GROUP_COLUMNS: Mapping[UsageReportGrouping, _GroupColumns] = {
    UsageReportGrouping.TEAM: _GroupColumns(
        column="team_id", allocated="claim__team_id", names=(Team, "name")
    ),
    UsageReportGrouping.QUEUE: _GroupColumns(
        column="queue_id", allocated="claim__queue_id", names=(Queue, "name")
    ),
    UsageReportGrouping.USER: _GroupColumns(
        column="user_id", allocated="claim__user_id", names=(User, "username")
    ),
    UsageReportGrouping.CHIP: _GroupColumns(column="chip", allocated="card__chip"),
    UsageReportGrouping.WORK: _GroupColumns(column="work_kind", allocated="claim__work_kind"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReportRow:
    """Usage of one group in one interval, of all chips."""

    #: First day of the month, or the day; None for the whole period.
    when: date | None
    #: Name of the group; empty if unknown.
    name: str
    card_microseconds: int
    cost: Cost
    #: Share of the total usage, 0 to 1.
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """A usage report; rows by time, then by usage, largest first."""

    period: DayRange
    at: datetime
    rows: tuple[UsageReportRow, ...]
    card_microseconds: int
    cost: Cost
    #: Card-microseconds by chip, largest first, in the period and on each day.
    chips: Mapping[str, int]
    days: Mapping[str, Mapping[date, int]]


def usage_report(
    user: accounts.RequestUser,
    *,
    period: DayRange,
    by: UsageReportGrouping,
    per: UsageReportInterval,
    at: datetime,
) -> UsageReport:
    """The report as far as the user may see it; current allocations count up to ``at``."""
    query, priced = _report_query(user, period, at=at), card_rates()
    amounts = _report_amounts(query, by=by, per=per)
    by_day = _report_amounts(query, by=UsageReportGrouping.CHIP, per=UsageReportInterval.DAY)
    days: dict[str, dict[date, int]] = defaultdict(dict)
    for (day, _, chip), amount in by_day.items():
        if day is not None:
            days[chip][day] = amount
    chips = {chip: sum(found.values()) for chip, found in days.items()}
    chips = dict(sorted(chips.items(), key=lambda pair: (-pair[1], pair[0])))
    return UsageReport(
        period=period,
        at=at,
        rows=_report_rows(amounts, by=by, priced=priced),
        card_microseconds=sum(chips.values()),
        cost=cost_of(chips, priced),
        chips=chips,
        days={chip: days[chip] for chip in chips},
    )


def _report_rows(
    amounts: Amounts, *, by: UsageReportGrouping, priced: Mapping[str, Decimal]
) -> tuple[UsageReportRow, ...]:
    used: dict[tuple[date | None, Any], dict[str, int]] = defaultdict(dict)
    for (when, key, chip), amount in amounts.items():
        used[when, key][chip] = amount
    total = sum(amounts.values())
    naming, names = _GROUP_COLUMNS[by].names, dict[Any, str]()
    if naming:
        model, field_name = naming
        rows_of_keys = model._default_manager.filter(pk__in={key for _, key in used})
        names = dict(rows_of_keys.values_list("pk", field_name))
    rows = (
        UsageReportRow(
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
class _ReportQuery:
    """Scope and period of a report, and the days that have to be summed from records."""

    scope: UsageScope
    period: DayRange
    touched: Sequence[date]
    at: datetime


def _report_query(user: accounts.RequestUser, period: DayRange, *, at: datetime) -> _ReportQuery:
    # Including today: a claim may end before its record is read.
    days = {*usage_days_to_roll_up(), TimeSpan(since=at, until=at).day}
    touched = sorted(day for day in days if period.first <= day <= period.last)
    return _ReportQuery(scope=usage_scope(user), period=period, touched=touched, at=at)


def _report_amounts(
    query: _ReportQuery, *, by: UsageReportGrouping, per: UsageReportInterval
) -> Amounts:
    found: dict[tuple[date | None, Any, str], int] = defaultdict(int)
    for when, since, key, chip, amount in _query_amounts(query, by=by, per=per):
        if since is None:
            found[when, key, chip] += amount
            continue
        allocated = query.period.span.within(TimeSpan(since=since, until=query.at))
        for part in allocated.by_day():
            found[_first_day_of_interval(per, part.day), key, chip] += amount * part.microseconds
    return found


def _query_amounts(
    query: _ReportQuery, *, by: UsageReportGrouping, per: UsageReportInterval
) -> QuerySet[Any, tuple[Any, ...]]:
    """(when, since, key, chip, amount): sums of card-microseconds; with a ``since``, allocated cards."""
    key, scope = _GROUP_COLUMNS[by], query.scope
    days = (query.period.first, query.period.last)
    rolled = UsageDay.objects.filter(scope.over(), day__range=days)
    rolled = rolled.exclude(day__in=query.touched)
    records = usage_records_of_days(query.touched).filter(scope.over())
    allocated = Allocation.objects.filter(scope.over("claim__"), released_at=None)
    never, nowhen = Cast(Value(None), DateTimeField()), Cast(Value(None), DateField())
    summed = Sum("card_microseconds")
    return (
        rolled.order_by()
        .values_list(_interval_start(per, F("day")), never, key.column, "chip")
        .annotate(amount=summed)
        .union(
            records.order_by()
            .values_list(_interval_start(per, RECORD_DAY), never, key.column, "chip")
            .annotate(amount=summed),
            allocated.order_by()
            .values_list(nowhen, unrecorded_usage_start("claim__"), key.allocated, "card__chip")
            .annotate(amount=Count("id")),
            all=True,
        )
    )


def _interval_start(per: UsageReportInterval, day: Any) -> Any:
    if per is UsageReportInterval.WHOLE:
        return Cast(Value(None), DateField())
    return day if per is UsageReportInterval.DAY else TruncMonth(day, output_field=DateField())


def _first_day_of_interval(per: UsageReportInterval, day: date) -> date | None:
    if per is UsageReportInterval.WHOLE:
        return None
    return day if per is UsageReportInterval.DAY else day.replace(day=1)
