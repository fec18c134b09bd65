"""When a claim will start, by the same plan that will start it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.forecast import (
    ForecastAssumptions,
    PredictedStartTime,
    forecast_starts,
)
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.scheduling.runtime_estimates import CompletedRun, RuntimeHistory
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot
from tests.properties import examples
from tests.unit.domain.scheduling.fleets import (
    AT,
    NPU,
    claim,
    hours,
    node,
    role,
    running,
    snapshot,
)


def forecasts(
    seen: SchedulingSnapshot, assumed: ForecastAssumptions | None = None
) -> dict[str, PredictedStartTime]:
    return dict(forecast_starts(seen, SchedulingPolicy(), at=AT, assumptions=assumed))


def test_what_has_room_starts_now() -> None:
    found = forecasts(snapshot(node("a"), claims=[claim("c")]))["c"]
    assert found.starts_at == found.earliest == found.latest == AT
    assert (found.chip, found.nodes, found.blocked_by) == (NPU, ("a",), ())
    assert found.reason == "starts now: enough capacity is free"


def test_what_has_no_room_starts_when_those_end_whose_cards_it_gets() -> None:
    seen = snapshot(
        node("a", 4),
        node("b", 4),
        running=[
            running("short", {"a": (0, 1)}, ends_in=hours(1)),
            running("other", {"a": (2, 3)}, ends_in=hours(2)),
            running("long", {"b": (0, 1, 2, 3)}, ends_in=hours(9)),
        ],
        claims=[claim("c", role(4))],
    )
    found = forecasts(seen)["c"]
    assert found.starts_at == AT + hours(2)
    assert found.nodes == ("a",)
    assert found.blocked_by == ("other", "short")
    assert found.reason == "starts when other, short have ended"


def test_the_range_is_as_wide_as_the_doubt_about_stated_ends() -> None:
    seen = snapshot(
        node("a", 1), running=[running("r", {"a": (0,)}, ends_in=hours(4))], claims=[claim("c")]
    )
    found = forecasts(seen, ForecastAssumptions(uncertainty=0.5))["c"]
    assert found.starts_at == AT + hours(4)
    assert found.earliest == AT + hours(2)
    assert found.latest == AT + hours(6)


def test_claims_that_go_first_are_waited_for_as_well() -> None:
    seen = snapshot(
        node("a", 1),
        running=[running("r", {"a": (0,)}, ends_in=hours(1))],
        claims=[claim("late", minute=5), claim("first", runtime=hours(2))],
    )
    found = forecasts(seen)
    assert found["first"].starts_at == AT + hours(1)
    assert found["late"].starts_at == AT + hours(3)
    assert found["late"].blocked_by == ("first",)


def test_an_urgent_arrival_goes_before_what_waits() -> None:
    seen = snapshot(
        node("a", 1),
        running=[running("r", {"a": (0,)}, ends_in=hours(2), preemptible=False)],
        claims=[claim("c")],
    )
    coming = claim("urgent", priority=9, minute=30, runtime=hours(3))
    found = forecasts(seen, ForecastAssumptions(arrivals=(coming,)))
    assert found["urgent"].starts_at == AT + hours(2)
    assert found["c"].starts_at == AT + hours(5)


def test_runtimes_of_the_past_stand_in_for_ends_that_nobody_stated() -> None:
    past = RuntimeHistory(
        CompletedRun(queue="research", cards=1, runtime=hours(each)) for each in range(1, 41)
    )
    seen = snapshot(
        node("a", 1), running=[running("r", {"a": (0,)}, since=hours(20))], claims=[claim("c")]
    )
    found = forecasts(seen, ForecastAssumptions(runtimes=past))["c"]
    # Of those that ran longer than 20 hours, half had ended after 30.
    assert found.starts_at == AT + hours(10)
    assert (found.earliest, found.latest) == (AT + hours(5), AT + hours(15))


def test_without_any_idea_of_an_end_there_is_no_start() -> None:
    seen = snapshot(node("a", 1), running=[running("r", {"a": (0,)})], claims=[claim("c")])
    found = forecasts(seen)["c"]
    assert found.starts_at is found.earliest is found.latest is None
    assert found.reason.startswith("not within the next 24 hours: ")


def test_what_is_overdue_ends_any_moment() -> None:
    seen = snapshot(
        node("a", 1), running=[running("r", {"a": (0,)}, ends_in=-hours(1))], claims=[claim("c")]
    )
    assert forecasts(seen)["c"].starts_at == AT


def test_beyond_the_horizon_nothing_is_said() -> None:
    seen = snapshot(
        node("a", 1), running=[running("r", {"a": (0,)}, ends_in=hours(30))], claims=[claim("c")]
    )
    found = forecasts(seen)["c"]
    assert found.starts_at is None
    # If it ends early it is within the day.
    assert found.earliest == AT + hours(22.5)
    assert forecasts(seen, ForecastAssumptions(horizon=hours(72)))["c"].starts_at == AT + hours(30)


def test_a_claim_below_its_guarantee_starts_when_the_borrower_has_stopped() -> None:
    owner = QueueSnapshot(
        uid="owner", name="owner", entitlements={NPU: ChipQuota(guaranteed=2, cap=2)}
    )
    seen = snapshot(
        node("a", 2),
        running=[running("borrower", {"a": (0, 1)}, ends_in=hours(9))],
        claims=[claim("c", role(2), queue="owner", runtime=hours(1))],
        queues=[owner, QueueSnapshot(uid="research", name="research")],
    )
    found = forecasts(seen, ForecastAssumptions(grace=timedelta(minutes=5)))
    assert found["c"].starts_at == AT + timedelta(minutes=5)
    assert found["c"].blocked_by == ("borrower",)
    # And who had to stop goes on behind it.
    assert found["borrower"].starts_at == AT + timedelta(minutes=65)
    assert found["borrower"].blocked_by == ("c",)


@pytest.mark.parametrize("for_whom", ["c", ""])
def test_what_was_told_to_stop_before_stops_and_waits_again_if_it_was_for_somebody(
    for_whom: str,
) -> None:
    leaving = replace(
        running("r", {"a": (0,)}, ends_in=hours(9)), revoking=True, revoked_for=for_whom
    )
    seen = snapshot(node("a", 1), running=[leaving], claims=[claim("c", runtime=hours(1))])
    found = forecasts(seen, ForecastAssumptions(grace=timedelta(minutes=5)))
    assert found["c"].starts_at == AT + timedelta(minutes=5)
    assert ("r" in found) == bool(for_whom)


def test_a_queue_at_its_cap_waits_for_its_own() -> None:
    queue = QueueSnapshot(uid="research", name="research", entitlements={NPU: ChipQuota(cap=1)})
    seen = snapshot(
        node("a", 8),
        running=[running("mine", {"a": (0,)}, ends_in=hours(1))],
        claims=[claim("c")],
        queues=[queue],
    )
    found = forecasts(seen)["c"]
    assert found.starts_at == AT + hours(1)
    assert found.blocked_by == ("mine",)


def test_no_more_cycles_are_played_than_allowed() -> None:
    seen = snapshot(
        node("a", 1),
        running=[running("r", {"a": (0,)}, ends_in=hours(1))],
        claims=[claim(f"c{each}", minute=each, runtime=hours(1)) for each in range(6)],
    )
    found = forecasts(seen, ForecastAssumptions(cycles=3))
    assert sum(each.starts_at is not None for each in found.values()) == 2
    assert sum(each.starts_at is not None for each in forecasts(seen).values()) == 6


@settings(max_examples=examples(40))
@given(
    ends=st.lists(st.integers(1, 20), min_size=4, max_size=4),
    asked=st.lists(
        st.tuples(st.sampled_from([1, 2, 4]), st.integers(1, 8)), min_size=1, max_size=6
    ),
)
def test_no_forecast_lies_outside_of_its_range_or_changes_when_asked_again(
    ends: list[int], asked: list[tuple[int, int]]
) -> None:
    seen = snapshot(
        node("a", 4),
        running=[
            running(f"r{each}", {"a": (each,)}, ends_in=hours(end)) for each, end in enumerate(ends)
        ],
        claims=[
            claim(f"c{each}", role(cards), minute=each, runtime=hours(length))
            for each, (cards, length) in enumerate(asked)
        ],
    )
    found = forecasts(seen, ForecastAssumptions(horizon=hours(24 * 7)))
    assert set(found) == {each.uid for each in seen.claims}
    for each in found.values():
        assert each.starts_at is not None
        assert each.earliest is not None
        assert each.latest is not None
        assert AT < each.earliest <= each.starts_at <= each.latest
        assert each.blocked_by
    assert found == forecasts(seen, ForecastAssumptions(horizon=hours(24 * 7)))
