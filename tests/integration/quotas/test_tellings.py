"""Newcomers are told first why they wait; whose numbers changed is told in turns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apps.quotas.reconcilers import tellings
from apps.quotas.reconcilers.tellings import (
    FEWEST_CHANGED_AT_ONCE,
    FEWEST_NEWCOMERS,
    MOST_CHANGED,
    MOST_CHANGED_AT_ONCE,
    MOST_NEWCOMERS,
    Allowance,
    Teller,
)
from apps.quotas.selectors.claim_rows import Told
from controlplane.domain.claims import UNTOLD, GangShape, RoleShape
from controlplane.domain.scheduling.plans import Reason, RefusalCode, Refusals, Refused
from controlplane.domain.scheduling.snapshots import ClaimView


class Clock:
    """Of the tellings; it goes when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(tellings, "monotonic", clock)
    return clock


def waiting(uid: str) -> ClaimView:
    return ClaimView(
        uid=uid,
        queue="research",
        shape=GangShape(roles=(RoleShape(name="worker", replicas=1, cards=1),)),
        chips=("ascend-910b",),
        priority=0,
        created_at=datetime(2026, 3, 2, tzinfo=UTC),
    )


def refused(reason: str, *counts: int) -> Refusals:
    """Groups of so many claims, numbered one after the other."""
    groups, first = [], 0
    for count in counts:
        claims = [waiting(f"c{number:05}") for number in range(first, first + count)]
        groups.append(Refused(Reason(code=RefusalCode.NO_FREE_CARDS, reason=reason), claims))
        first += count
    return Refusals(groups)


def all_told(refusals: Refusals, reason: str) -> dict[str, str]:
    return {each.claim: reason for each in refusals}


def as_told(were: dict[str, str]) -> Told:
    return Told({claim for claim, was in were.items() if was == UNTOLD}, were.copy)


def test_who_was_told_the_same_is_not_told_again(clock: Clock) -> None:
    now = refused("3 are free", 30)
    assert Teller().news(now, as_told(all_told(now, "3 are free"))) == []


def test_a_few_are_all_told_at_once(clock: Clock) -> None:
    now = refused("2 are free", 20, 40)
    told = all_told(now, "3 are free") | {"c00005": UNTOLD}

    news = Teller().news(now, as_told(told))

    assert news[0].claim == "c00005"
    assert sorted(each.claim for each in news) == [each.claim for each in now]
    assert {each.reason for each in news} == {"2 are free"}


def test_newcomers_are_told_before_thousands_whose_numbers_changed(clock: Clock) -> None:
    now, teller = refused("2 are free", 5000), Teller()
    told = all_told(now, "3 are free") | {f"c{n:05}": UNTOLD for n in range(4900, 5000)}

    news = [each.claim for each in teller.news(now, as_told(told))]

    assert news[:100] == [f"c{number:05}" for number in range(4900, 5000)]
    assert news[100:] == [f"c{number:05}" for number in range(MOST_CHANGED_AT_ONCE)]


def test_everybodys_turn_comes_even_if_all_numbers_change_with_every_cycle(clock: Clock) -> None:
    told, teller = all_told(refused("", 700, 1, 1300), "3 are free"), Teller()
    heard: set[str] = set()
    for cycle in range(40):
        news = teller.news(refused(f"{cycle} are free", 700, 1, 1300), as_told(told))
        told |= {each.claim: each.reason for each in news}
        heard |= {each.claim for each in news}
        clock.now += 0.25
    assert heard == told.keys()


def test_cycles_right_behind_each_other_tell_newcomers_only(clock: Clock) -> None:
    now, teller = refused("2 are free", 5000), Teller()
    told = all_told(now, "3 are free")
    assert len(teller.news(now, as_told(told))) == MOST_CHANGED_AT_ONCE

    clock.now += 0.9 * FEWEST_CHANGED_AT_ONCE / MOST_CHANGED
    told["c04999"] = UNTOLD
    assert [each.claim for each in teller.news(now, as_told(told))] == ["c04999"]

    clock.now += 0.2 * FEWEST_CHANGED_AT_ONCE / MOST_CHANGED
    assert len(teller.news(now, as_told(told))) > FEWEST_CHANGED_AT_ONCE


def test_newcomers_are_bounded_too_but_some_are_always_told(clock: Clock) -> None:
    now, teller = refused("2 are free", 3000), Teller()
    told = all_told(now, UNTOLD)
    assert len(teller.news(now, as_told(told))) == MOST_NEWCOMERS
    assert len(teller.news(now, as_told(told))) == FEWEST_NEWCOMERS


def test_what_is_not_used_is_there_for_later_up_to_a_bound(clock: Clock) -> None:
    allowance = Allowance(per_second=100, at_once=500)
    allowance.use(500)
    assert allowance.left() == 0
    clock.now += 0.5
    assert allowance.left() == 50
    allowance.use(20)
    clock.now += 1
    assert allowance.left() == 130
    clock.now += 3600
    assert allowance.left() == 500


def test_that_nobody_has_looked_at_it_is_not_told_to_a_newcomer(clock: Clock) -> None:
    now, later = refused("this cycle placed 200", 30), refused("2 are free", 30)
    reason = Reason(code=RefusalCode.NOT_LOOKED_AT, reason="this cycle placed 200")
    unseen = Refusals([Refused(reason, group.claims) for group in now.groups])
    told, teller = as_told(all_told(now, UNTOLD)), Teller()
    assert teller.news(unseen, told) == []
    assert len(teller.news(later, told)) == 30
