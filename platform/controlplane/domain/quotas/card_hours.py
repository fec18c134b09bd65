"""Use of cards as intervals, day by day, in exact integers.

    admitted          midnight (UTC)        released
       ├───────────────────┼───────────────────┤
       └── a record ───────┴── another ────────┘     cards × (until − since), in microseconds

Amounts are integers of card-microseconds, so that the sum of records is exactly the use, however often an
interval was split. Hours and costs are computed for display only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)
HOUR_MICROSECONDS = 3_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """From one instant up to another, without that one."""

    since: datetime
    until: datetime

    @property
    def microseconds(self) -> int:
        """How long it is; negative where it ends before it begins."""
        return (self.until - self.since) // MICROSECOND

    @property
    def day(self) -> date:
        """The day (UTC) on which it begins."""
        return self.since.astimezone(UTC).date()

    def by_day(self) -> Iterator[TimeSpan]:
        """The same time cut at midnights (UTC); nothing where it has no length."""
        since = self.since
        while since < self.until:
            until = min(self.until, midnight_before(since) + DAY)
            yield TimeSpan(since=since, until=until)
            since = until

    def within(self, other: TimeSpan) -> TimeSpan:
        """What both have in common; without length where that is nothing."""
        since = max(self.since, other.since)
        return TimeSpan(since=since, until=max(since, min(self.until, other.until)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRange:
    """Whole days (UTC), the last one included."""

    first: date
    last: date

    @property
    def span(self) -> TimeSpan:
        return TimeSpan(since=midnight_of(self.first), until=midnight_of(self.last) + DAY)

    @property
    def days(self) -> tuple[date, ...]:
        return tuple(
            self.first + DAY * number for number in range((self.last - self.first).days + 1)
        )


def midnight_of(day: date) -> datetime:
    """When that day begins in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def midnight_before(at: datetime) -> datetime:
    """The last midnight in UTC, ``at`` itself if it is one."""
    return midnight_of(at.astimezone(UTC).date())


def month_of(day: date) -> DayRange:
    """The calendar month of that day."""
    first = day.replace(day=1)
    return DayRange(first=first, last=(first + 31 * DAY).replace(day=1) - DAY)


def month_before(day: date) -> DayRange:
    """The calendar month before that of the day."""
    return month_of(day.replace(day=1) - DAY)


def cards_by_day(*, cards: int, span: TimeSpan) -> Iterator[tuple[TimeSpan, int]]:
    """The span cut at midnights, each piece with the card-microseconds of so many cards."""
    for piece in span.by_day():
        yield piece, cards * piece.microseconds


def card_hours(card_microseconds: int) -> Decimal:
    """To three decimals, for display. Sums are computed from exact numbers."""
    return (Decimal(card_microseconds) / HOUR_MICROSECONDS).quantize(Decimal("0.001"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What use is charged at: the amount of what has a rate, and the chips that have none."""

    amount: Decimal
    unrated: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether anything was charged, or nothing was used: otherwise the amount is meaningless."""
        return bool(self.amount) or not self.unrated


def cost_of(used: Mapping[str, int], rates: Mapping[str, Decimal]) -> Cost:
    """``used``: card-microseconds by chip; ``rates``: what an hour of one card costs, by chip."""
    amount = sum((rates[chip] * used[chip] for chip in used if chip in rates), start=Decimal())
    return Cost(
        amount=(amount / HOUR_MICROSECONDS).quantize(Decimal("0.01")),
        unrated=tuple(sorted(chip for chip in used if used[chip] and chip not in rates)),
    )
