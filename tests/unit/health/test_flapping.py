"""What comes and goes is isolated, by the maker's number or the policy's."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from controlplane.domain.health.faults import NEVER, FaultLevel, RepeatRule, SignalOrigin
from controlplane.domain.health.isolations import release_blocker_reason
from controlplane.domain.health.recommended_actions import FaultSeverities
from controlplane.domain.health.snapshots import (
    DecisionPolicy,
    FaultView,
    HealthAction,
    HealthSnapshot,
    IsolationView,
)
from tests.unit.health.snapshots import (
    NOW,
    ago,
    applied,
    decided,
    fault,
    fleet,
    health_snapshot,
    only,
)


def episodes(
    times: int,
    level: FaultLevel,
    *,
    rule: RepeatRule | None = None,
    origin: SignalOrigin = SignalOrigin.EXPORTER,
) -> list[FaultView]:
    """So many in the last hours, the last of which stands."""
    found = []
    for hours in range(times - 1, -1, -1):
        ended: datetime | None = ago(hours=hours) + timedelta(minutes=3) if hours else None
        one = fault(
            "n0-3", level, code="80E18005", origin=origin, began_at=ago(hours=hours), ended_at=ended
        )
        found.append(replace(one, repeat_rule=rule))
    return found


def test_the_third_time_within_a_day_isolates_whatever_the_level() -> None:
    twice = health_snapshot(fleet(40), *episodes(2, FaultLevel.RESTART_REQUEST))
    thrice = health_snapshot(fleet(40), *episodes(3, FaultLevel.RESTART_REQUEST))
    assert only(decided(twice)).action is HealthAction.RESTART_REQUEST
    found = only(decided(thrice))
    assert found.action is HealthAction.ISOLATE_CARD
    assert (
        found.reason
        == "fault 80E18005 occurred 3 times within 24 hours; the limit for isolation is 3"
    )


@pytest.mark.parametrize("times", [2, 3, 5])
def test_the_makers_number_goes_before_the_policys(times: int) -> None:
    limit = RepeatRule(times=times, within=timedelta(hours=24))
    below = episodes(times - 1, FaultLevel.NOTE, rule=limit)
    reached = episodes(times, FaultLevel.NOTE, rule=limit)
    assert only(decided(health_snapshot(fleet(40), *below))).action is HealthAction.NOTE
    assert only(decided(health_snapshot(fleet(40), *reached))).action is HealthAction.ISOLATE_CARD


@pytest.mark.parametrize(
    "faults",
    [
        episodes(9, FaultLevel.NOTE),
        episodes(9, FaultLevel.RESTART_JOB, rule=NEVER),
        episodes(9, FaultLevel.RESTART_JOB, origin=SignalOrigin.JOB),
    ],
    ids=["notes", "what programs do to themselves", "what crashed jobs left behind"],
)
def test_some_things_may_come_back_as_often_as_they_like(faults: list[FaultView]) -> None:
    assert (
        only(decided(health_snapshot(fleet(40), *faults))).action.rank
        <= HealthAction.RESTART_JOB.rank
    )


def test_the_same_code_of_two_origins_or_two_cards_is_not_the_same_fault_again() -> None:
    faults = [
        fault("n0-3", FaultLevel.RESTART_JOB, origin=SignalOrigin.EXPORTER),
        fault("n0-3", FaultLevel.RESTART_JOB, origin=SignalOrigin.EVENT),
        fault("n0-4", FaultLevel.RESTART_JOB, origin=SignalOrigin.EXPORTER),
    ]
    found = decided(health_snapshot(fleet(40), *faults))
    assert {each.action for each in found} == {HealthAction.RESTART_JOB}


def test_what_came_before_it_was_given_back_does_not_count() -> None:
    seen = health_snapshot(fleet(40), *episodes(3, FaultLevel.RESTART_JOB))
    seen = replace(seen, released={"n0-3": ago(minutes=90)})
    assert only(decided(seen)).action is HealthAction.RESTART_JOB


def test_a_flapping_card_stays_out_until_few_enough_of_its_faults_are_recent() -> None:
    flapping = health_snapshot(fleet(40), *episodes(3, FaultLevel.RESTART_JOB))
    done = applied(flapping, decided(flapping))
    ended = replace(done.faults[-1], ended_at=NOW)
    done = replace(done, faults=(*done.faults[:-1], ended))

    def reason_at(at: datetime) -> str:
        return reason(done, at)

    assert "occurred 3 times" in reason_at(NOW + timedelta(hours=1))
    assert reason_at(NOW + timedelta(hours=22, minutes=1)) == ""


def reason(seen: HealthSnapshot, at: datetime) -> str:
    policy = DecisionPolicy()
    return release_blocker_reason(
        seen.faults,
        isolation=IsolationView(node="n0", card="n0-3"),
        severities=FaultSeverities(seen.faults, seen.released, policy, at),
        policy=policy,
        at=at,
    )
