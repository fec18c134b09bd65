"""The rate limit of pending reasons: first reasons before changed ones."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apps.quotas.reconcilers import scheduling_cycles
from apps.quotas.reconcilers.scheduling_cycles import (
    MAX_CHANGED_BATCH,
    MAX_CHANGED_PER_SECOND,
    MAX_NEW_PER_SECOND,
    MIN_CHANGED_BATCH,
    MIN_NEW_PER_CYCLE,
    ReasonBudget,
    ReasonThrottle,
)
from apps.quotas.selectors.claim_snapshots import PendingReasons
from controlplane.domain.quotas.claims import NOT_EVALUATED_REASON, GangShape, RoleShape
from controlplane.domain.scheduling.plans import (
    PendingClaims,
    PendingGroup,
    PendingReason,
    PendingReasonCode,
)
from controlplane.domain.scheduling.snapshots import ClaimSnapshot


class Clock:
    """A clock that advances explicitly."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(scheduling_cycles, "monotonic", clock)
    return clock


def waiting(uid: str) -> ClaimSnapshot:
    return ClaimSnapshot(
        uid=uid,
        queue="research",
        shape=GangShape(roles=(RoleShape(name="worker", replicas=1, cards=1),)),
        chips=("ascend-910b",),
        priority=0,
        created_at=datetime(2026, 3, 2, tzinfo=UTC),
    )


def refused(reason: str, *counts: int) -> PendingClaims:
    """Groups of so many claims, numbered one after the other."""
    groups, first = [], 0
    for count in counts:
        claims = [waiting(f"c{number:05}") for number in range(first, first + count)]
        groups.append(
            PendingGroup(PendingReason(code=PendingReasonCode.NO_FREE_CARDS, reason=reason), claims)
        )
        first += count
    return PendingClaims(groups)


def with_reason(pending: PendingClaims, reason: str) -> dict[str, str]:
    return {each.claim: reason for each in pending}


def stored_reasons(were: dict[str, str]) -> PendingReasons:
    return PendingReasons(
        {claim for claim, was in were.items() if was == NOT_EVALUATED_REASON}, were.copy
    )


def test_unchanged_reasons_are_not_written(clock: Clock) -> None:
    now = refused("3 are free", 30)
    assert ReasonThrottle().due(now, stored_reasons(with_reason(now, "3 are free"))) == []


def test_a_few_reasons_are_all_written_at_once(clock: Clock) -> None:
    now = refused("2 are free", 20, 40)
    stored = with_reason(now, "3 are free") | {"c00005": NOT_EVALUATED_REASON}

    due = ReasonThrottle().due(now, stored_reasons(stored))

    assert due[0].claim == "c00005"
    assert sorted(each.claim for each in due) == [each.claim for each in now]
    assert {each.reason for each in due} == {"2 are free"}


def test_first_reasons_come_before_changed_ones(clock: Clock) -> None:
    now, throttle = refused("2 are free", 5000), ReasonThrottle()
    stored = with_reason(now, "3 are free") | {
        f"c{n:05}": NOT_EVALUATED_REASON for n in range(4900, 5000)
    }

    due = [each.claim for each in throttle.due(now, stored_reasons(stored))]

    assert due[:100] == [f"c{number:05}" for number in range(4900, 5000)]
    assert due[100:] == [f"c{number:05}" for number in range(MAX_CHANGED_BATCH)]


def test_all_changed_reasons_are_written_round_robin(clock: Clock) -> None:
    stored, throttle = with_reason(refused("", 700, 1, 1300), "3 are free"), ReasonThrottle()
    written: set[str] = set()
    for cycle in range(40):
        due = throttle.due(refused(f"{cycle} are free", 700, 1, 1300), stored_reasons(stored))
        stored |= {each.claim: each.reason for each in due}
        written |= {each.claim for each in due}
        clock.now += 0.25
    assert written == stored.keys()


def test_rapid_cycles_write_only_first_reasons(clock: Clock) -> None:
    now, throttle = refused("2 are free", 5000), ReasonThrottle()
    stored = with_reason(now, "3 are free")
    assert len(throttle.due(now, stored_reasons(stored))) == MAX_CHANGED_BATCH

    clock.now += 0.9 * MIN_CHANGED_BATCH / MAX_CHANGED_PER_SECOND
    stored["c04999"] = NOT_EVALUATED_REASON
    assert [each.claim for each in throttle.due(now, stored_reasons(stored))] == ["c04999"]

    clock.now += 0.2 * MIN_CHANGED_BATCH / MAX_CHANGED_PER_SECOND
    assert len(throttle.due(now, stored_reasons(stored))) > MIN_CHANGED_BATCH


def test_first_reasons_are_limited_with_a_minimum_per_cycle(clock: Clock) -> None:
    now, throttle = refused("2 are free", 3000), ReasonThrottle()
    stored = with_reason(now, NOT_EVALUATED_REASON)
    assert len(throttle.due(now, stored_reasons(stored))) == MAX_NEW_PER_SECOND
    assert len(throttle.due(now, stored_reasons(stored))) == MIN_NEW_PER_CYCLE


def test_a_token_bucket_refills_up_to_its_size(clock: Clock) -> None:
    bucket = ReasonBudget(per_second=100, at_once=500)
    bucket.use(500)
    assert bucket.available() == 0
    clock.now += 0.5
    assert bucket.available() == 50
    bucket.use(20)
    clock.now += 1
    assert bucket.available() == 130
    clock.now += 3600
    assert bucket.available() == 500


def test_not_considered_is_not_written_as_a_first_reason(clock: Clock) -> None:
    now, later = refused("this cycle placed 200", 30), refused("2 are free", 30)
    reason = PendingReason(code=PendingReasonCode.NOT_EVALUATED, reason="this cycle placed 200")
    unseen = PendingClaims([PendingGroup(reason, group.claims) for group in now.groups])
    stored, throttle = stored_reasons(with_reason(now, NOT_EVALUATED_REASON)), ReasonThrottle()
    assert throttle.due(unseen, stored) == []
    assert len(throttle.due(later, stored)) == 30
