"""What changes would do, told in numbers; nothing is touched."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.forecast import PredictedStartTime
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot
from controlplane.domain.scheduling.what_if import (
    AddClaim,
    AddGuaranteedCards,
    AddNodes,
    ChangePriority,
    DrainNode,
    RemoveClaim,
    StartTimeChange,
    UnknownWhatIfObject,
    WhatIfChange,
    apply_changes,
    run_what_if,
)
from tests.unit.domain.scheduling.fleets import (
    AT,
    GPU,
    NPU,
    claim,
    hours,
    node,
    role,
    running,
    snapshot,
)

#: One node of two; a job of two that ends in an hour, and two claims behind it.
BUSY = snapshot(
    node("a", 2),
    running=[running("r", {"a": (0, 1)}, ends_in=hours(1))],
    claims=[
        claim("first", role(2), minute=1, runtime=hours(3)),
        claim("second", role(2), minute=2, runtime=hours(3)),
    ],
)


def asked(seen: SchedulingSnapshot, *changes: WhatIfChange) -> tuple[StartTimeChange, ...]:
    return run_what_if(seen, changes, SchedulingPolicy(), at=AT)


def start_of(forecast: PredictedStartTime) -> datetime:
    """Later than any other where it does not start within the horizon."""
    return forecast.starts_at or datetime.max.replace(tzinfo=UTC)


def count_moved(found: Iterable[StartTimeChange]) -> tuple[int, int]:
    """How many of the claims that are pending in both start earlier, and later."""
    starts = [
        (start_of(each.before), start_of(each.after))
        for each in found
        if each.before is not None and each.after is not None
    ]
    return (
        sum(after < before for before, after in starts),
        sum(after > before for before, after in starts),
    )


def test_without_a_change_nothing_is_different() -> None:
    found = asked(BUSY)
    assert count_moved(found) == (0, 0)
    assert all(each.before == each.after for each in found)


def test_another_node_lets_the_first_start_now_and_the_second_in_its_place() -> None:
    found = asked(BUSY, AddNodes(like="a"))
    gained = {each.claim: each.gained for each in found}
    assert gained == {"first": hours(1), "second": hours(3)}
    assert [each.claim for each in found] == ["second", "first"]
    assert count_moved(found) == (2, 0)


def test_an_urgent_claim_passes_and_somebody_pays_for_it() -> None:
    held = replace(BUSY, running=(replace(BUSY.running[0], preemptible=False),))
    found = asked(held, ChangePriority(claim="second", priority=5))
    gained = {each.claim: each.gained for each in found}
    assert gained == {"second": hours(3), "first": -hours(3)}
    assert count_moved(found) == (1, 1)


def test_what_would_be_stopped_for_an_urgent_claim_is_told_as_well() -> None:
    found = asked(BUSY, ChangePriority(claim="second", priority=5))
    stopped = {each.claim: each.after for each in found if each.before is None}
    assert list(stopped) == ["r"]
    assert stopped["r"] is not None
    assert stopped["r"].blocked_by


def test_a_drained_node_takes_its_work_and_its_cards() -> None:
    seen = snapshot(node("a", 2), node("b", 2), running=BUSY.running, claims=BUSY.claims)
    found = asked(seen, DrainNode(node="b"))
    assert count_moved(found)[1] == 2
    moved = asked(seen, DrainNode(node="a"))
    assert {each.claim for each in moved if each.before is None} == {"r"}


def test_one_more_claim_shows_when_it_would_start() -> None:
    found = asked(BUSY, AddClaim(claim=claim("new", role(2), minute=3)))
    (new,) = [each for each in found if each.before is None]
    assert new.after is not None
    assert new.after.starts_at == AT + hours(7)


def test_without_what_runs_those_who_wait_start_earlier() -> None:
    found = asked(BUSY, RemoveClaim(claim="r"))
    assert count_moved(found)[0] == 2
    gone = asked(BUSY, RemoveClaim(claim="first"))
    assert {each.claim: each.gained for each in gone} == {
        "first": None,
        "second": hours(3),
    }


def test_more_cards_for_a_queue_lift_what_holds_it_back_up_the_tree() -> None:
    top = QueueSnapshot(
        uid="top",
        name="top",
        entitlements={NPU: ChipQuota(guaranteed=2, cap=2)},
        total=ChipQuota(cap=2),
    )
    below = QueueSnapshot(
        uid="below", name="below", parent="top", entitlements={NPU: ChipQuota(cap=2)}
    )
    seen = snapshot(
        node("a"),
        running=[running("r", {"a": (0, 1)}, queue="below", ends_in=hours(5))],
        claims=[claim("c", role(2), queue="below", runtime=hours(1))],
        queues=[top, below],
    )
    found = asked(seen, AddGuaranteedCards(queue="below", chip=NPU, cards=2))
    assert found[0].gained == hours(5)
    without = asked(seen, AddGuaranteedCards(queue="below", chip=GPU, cards=2))
    assert count_moved(without)[0] == 0


def test_fewer_cards_for_a_queue_never_go_below_none() -> None:
    seen = apply_changes(BUSY, [AddGuaranteedCards(queue="research", chip=NPU, cards=-9)], at=AT)
    assert seen.queues["research"].entitlements[NPU] == ChipQuota()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (AddNodes(like="z"), "there is no node 'z' in this snapshot"),
        (DrainNode(node="z"), "there is no node 'z' in this snapshot"),
        (ChangePriority(claim="r", priority=1), "there is no waiting claim 'r' in this snapshot"),
        (RemoveClaim(claim="z"), "there is no claim 'z' in this snapshot"),
        (
            AddGuaranteedCards(queue="z", chip=NPU, cards=1),
            "there is no queue 'z' in this snapshot",
        ),
        (AddClaim(claim=claim("n", queue="z")), "there is no queue 'z' in this snapshot"),
    ],
)
def test_a_change_to_what_is_not_there_is_refused(change: WhatIfChange, message: str) -> None:
    with pytest.raises(UnknownWhatIfObject, match=message):
        asked(BUSY, change)


def test_the_snapshot_that_was_asked_about_stays_as_it_was() -> None:
    before = deepcopy(BUSY)
    asked(
        BUSY,
        AddGuaranteedCards(queue="research", chip=NPU, cards=4),
        AddNodes(like="a", nodes=2),
        ChangePriority(claim="second", priority=1),
        DrainNode(node="a"),
        AddClaim(claim=claim("n")),
        RemoveClaim(claim="first"),
    )
    assert before == BUSY
