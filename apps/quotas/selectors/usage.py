"""Questions about the ledger: its records, what has not been summed yet, and whether it agrees with the cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from django.db.models import (
    Count,
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    F,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.functions import Coalesce, TruncDate

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.quotas.models import Allocation, CardRate, Claim, Queue, UsageDay, UsageRecord
from controlplane.domain.claims import ClaimState
from controlplane.domain.permissions import Permission
from controlplane.domain.usage import DAY, MICROSECOND, Cost, Span, cost_of, midnight_of

#: No transaction that records use takes longer: what it wrote may be seen that much after it was written.
PATIENCE = timedelta(minutes=10)
#: On which day a record is.
DAY_OF = TruncDate("since", tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageScope:
    """Whose use somebody sees: of their teams, and of everybody in queues that they look after."""

    #: All there is: for administrators of the company.
    everything: bool = False
    teams: QuerySet[Team] = field(default_factory=Team.objects.none)
    #: Keys of queues.
    queues: frozenset[int] = frozenset()

    def over(self, path: str = "") -> Q:
        """As a condition on rows whose queue and team are at that path."""
        if self.everything:
            return Q()
        seen = Q(**{f"{path}team__in": self.teams})
        return seen | Q(**{f"{path}queue__in": self.queues}) if self.queues else seen


def usage_scope(user: accounts.Person) -> UsageScope:
    """Their teams; for queue admins the queues of their teams with all below; for the company everything."""
    if accounts.is_company_administrator(user):
        return UsageScope(everything=True)
    return UsageScope(teams=accounts.teams_of(user), queues=_looked_after(user))


def _looked_after(user: accounts.Person) -> frozenset[int]:
    """Keys of the queues of teams where they manage queues, and of those below."""
    teams = frozenset(
        accounts.teams_where(user, Permission.MANAGE_QUEUES).values_list("pk", flat=True)
    )
    if not teams:
        return frozenset()
    rows = list(Queue.objects.order_by().values_list("pk", "parent_id", "team_id"))
    found: set[int] = {pk for pk, _, team in rows if team in teams}
    grown = True
    while grown:
        below = {pk for pk, parent, _ in rows if parent in found} - found
        found |= below
        grown = bool(below)
    return frozenset(found)


def records_visible(user: accounts.Person) -> QuerySet[UsageRecord]:
    """Lines of the ledger."""
    rows = UsageRecord.objects.filter(usage_scope(user).over())
    return rows.select_related("queue", "team", "person", "claim")


def days_visible(user: accounts.Person) -> QuerySet[UsageDay]:
    """The ledger summed by day, as of the last roll."""
    rows = UsageDay.objects.filter(usage_scope(user).over())
    return rows.select_related("queue", "team", "person")


def days_touched() -> list[date]:
    """Days (UTC) of which records came since the last roll, or so shortly before that it may have missed them."""
    rolled = UsageDay.objects.aggregate(at=Max("rolled_at"))["at"]
    rows = UsageRecord.objects.order_by()
    if rolled is not None:
        rows = rows.filter(recorded_at__gt=rolled - PATIENCE)
    return sorted(rows.values_list(DAY_OF, flat=True).distinct())


def records_by_day(days: Sequence[date]) -> QuerySet[UsageRecord]:
    """The records of those days."""
    chosen = Q(pk__in=())
    for day in days:
        chosen |= Q(since__gte=midnight_of(day), since__lt=midnight_of(day) + DAY)
    return UsageRecord.objects.filter(chosen)


def rates() -> dict[str, Decimal]:
    """What an hour of one card costs, by chip; chips without a rate are not in it."""
    return dict(CardRate.objects.values_list("chip", "per_hour"))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkUsage:
    """What a job or a deployment used, what it holds now included."""

    card_microseconds: int
    cost: Cost


def usage_of_work(uid: str, *, at: datetime) -> WorkUsage | None:
    """Of all claims of that work together; None if it never held a card. Takes three statements."""
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
        .values_list("card__chip", metered_from("claim__"))
        .annotate(Count("id"))
    ):
        amount = cards * max(0, Span(since=since, until=at).microseconds)
        used[chip] = used.get(chip, 0) + amount
    if not used:
        return None
    return WorkUsage(card_microseconds=sum(used.values()), cost=cost_of(used, rates()))


def metered_from(path: str = "") -> Coalesce:
    """Since when what a claim holds is not in the ledger yet."""
    return Coalesce(f"{path}metered_until", f"{path}admitted_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrepancy:
    """A claim of which the ledger says something else than its allocations, in card-microseconds."""

    claim: str
    recorded: int
    allocated: int

    def __str__(self) -> str:
        return (
            f"claim {self.claim}: {self.recorded} card-microseconds are recorded, "
            f"its cards were held for {self.allocated}"
        )


def usage_discrepancies(*, since: datetime | None = None) -> list[Discrepancy]:
    """Claims whose records do not add up to their allocations, to the microsecond; none if all is well.

    Of a claim that holds cards the part counts that should be recorded already. With ``since`` only claims
    are compared that held cards after that.
    """
    ended = Coalesce("released_at", metered_from("claim__"), output_field=DateTimeField())
    lasted = ExpressionWrapper(ended - F("allocated_at"), output_field=DurationField())
    held = Allocation.objects.filter(claim=OuterRef("pk")).order_by().values("claim")
    recorded = UsageRecord.objects.filter(claim=OuterRef("pk")).order_by().values("claim")
    claims = Claim.objects.exclude(admitted_at=None).order_by("pk")
    if since is not None:
        claims = claims.filter(Q(released_at__gt=since) | ~Q(state=ClaimState.RELEASED))
    rows = claims.values_list(
        "uid",
        Subquery(recorded.annotate(sum=Sum("card_microseconds")).values("sum")),
        Subquery(held.annotate(sum=Sum(lasted)).values("sum"), output_field=DurationField()),
    )
    found = (
        Discrepancy(claim=uid, recorded=amount or 0, allocated=(time or timedelta()) // MICROSECOND)
        for uid, amount, time in rows.iterator()
    )
    return [one for one in found if one.recorded != one.allocated]
