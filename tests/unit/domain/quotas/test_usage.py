"""Use as intervals: nothing is lost or counted twice, wherever an interval is cut."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.quotas.card_hours import (
    Cost,
    DayRange,
    TimeSpan,
    card_hours,
    cards_by_day,
    cost_of,
    midnight_before,
    month_before,
    month_of,
)

START = datetime(2026, 2, 27, tzinfo=UTC)
MOST = 5 * 24 * 3600 * 10**6
instants = st.integers(0, MOST).map(lambda number: START + timedelta(microseconds=number))


@given(since=instants, until=instants)
def test_the_days_of_a_span_join_without_gap_and_each_lies_in_one_day(
    since: datetime, until: datetime
) -> None:
    span = TimeSpan(since=since, until=until)
    pieces = list(span.by_day())
    assert sum(piece.microseconds for piece in pieces) == max(0, span.microseconds)
    if pieces:
        assert (pieces[0].since, pieces[-1].until) == (since, until)
    for piece, following in pairwise(pieces):
        assert piece.until == following.since == midnight_before(piece.until)
    for piece in pieces:
        assert piece.since < piece.until <= midnight_before(piece.since) + timedelta(days=1)


class Ledger:
    """Records as the services write them: of each claim from its last one on, cut at midnights."""

    def __init__(self) -> None:
        self.at = START
        self.held: dict[int, tuple[int, datetime, datetime]] = {}
        self.records: list[tuple[int, date, int]] = []
        self.allocated: Counter[int] = Counter()
        self.claims = 0

    def admit(self, cards: int) -> None:
        self.claims += 1
        self.held[self.claims] = (cards, self.at, self.at)

    def _record(self, claim: int, until: datetime) -> None:
        cards, admitted, metered = self.held[claim]
        for piece, amount in cards_by_day(cards=cards, span=TimeSpan(since=metered, until=until)):
            self.records.append((claim, piece.day, amount))
        self.held[claim] = (cards, admitted, max(metered, until))

    def release(self, which: int) -> None:
        if not self.held:
            return
        claim = sorted(self.held)[which % len(self.held)]
        cards, admitted, _ = self.held[claim]
        self._record(claim, self.at)
        self.allocated[claim] = cards * TimeSpan(since=admitted, until=self.at).microseconds
        del self.held[claim]

    def cut(self) -> None:
        for claim in self.held:
            self._record(claim, midnight_before(self.at))


steps = st.lists(
    st.tuples(
        st.sampled_from(("admit", "release", "cut")),
        st.integers(1, 8),
        st.integers(0, 2 * 24 * 3600 * 10**6),
    ),
    max_size=40,
)


@given(steps=steps)
def test_records_add_up_to_what_was_held_whenever_they_are_cut(
    steps: list[tuple[str, int, int]],
) -> None:
    ledger = Ledger()
    for action, number, passed in steps:
        ledger.at += timedelta(microseconds=passed)
        if action == "admit":
            ledger.admit(number)
        elif action == "release":
            ledger.release(number)
        else:
            ledger.cut()
    while ledger.held:
        ledger.release(0)
    recorded: Counter[int] = Counter()
    by_day: Counter[date] = Counter()
    for claim, day, amount in ledger.records:
        recorded[claim] += amount
        by_day[day] += amount
    assert recorded == ledger.allocated
    assert sum(by_day.values()) == sum(ledger.allocated.values())


def test_a_day_ends_at_midnight_in_utc_wherever_the_instant_was_read() -> None:
    shanghai = timezone(timedelta(hours=8))
    at = datetime(2026, 3, 1, 7, 59, tzinfo=shanghai)
    assert midnight_before(at) == datetime(2026, 2, 28, tzinfo=UTC)
    assert TimeSpan(since=at, until=at).day == date(2026, 2, 28)


def test_what_two_spans_have_in_common_is_never_negative() -> None:
    day = DayRange(first=date(2026, 3, 1), last=date(2026, 3, 1)).span
    before = TimeSpan(since=START, until=START + timedelta(hours=1))
    assert before.within(day).microseconds == 0
    late = TimeSpan(since=day.until - timedelta(hours=1), until=day.until + timedelta(hours=1))
    assert late.within(day) == TimeSpan(since=late.since, until=day.until)


@pytest.mark.parametrize(
    ("day", "this", "last"),
    [
        (date(2026, 3, 31), (date(2026, 3, 1), date(2026, 3, 31)), date(2026, 2, 28)),
        (date(2028, 2, 29), (date(2028, 2, 1), date(2028, 2, 29)), date(2028, 1, 31)),
        (date(2026, 1, 1), (date(2026, 1, 1), date(2026, 1, 31)), date(2025, 12, 31)),
    ],
)
def test_a_month_is_the_calendars(day: date, this: tuple[date, date], last: date) -> None:
    assert (month_of(day).first, month_of(day).last) == this
    assert month_before(day).last == last
    assert month_before(day).first == last.replace(day=1)
    assert len(month_of(day).days) == this[1].day


def test_money_is_made_of_exact_amounts_and_a_missing_rate_is_named_rather_than_free() -> None:
    hour = 3_600_000_000
    rates = {"ascend-910b3": Decimal("7.5"), "nvidia-h800": Decimal("0.0001")}
    cost = cost_of({"ascend-910b3": 3 * hour, "nvidia-h800": hour, "biren-br106": 1}, rates)
    assert cost == Cost(amount=Decimal("22.50"), unrated=("biren-br106",))
    assert cost.known
    assert not cost_of({"biren-br106": hour}, rates).known
    assert cost_of({}, rates).known
    assert card_hours(hour // 3) == Decimal("0.333")
