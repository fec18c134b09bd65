"""A queue lets nobody run more than so many claims at once, those of the queues below counted in."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import (
    PendingClaim,
    PendingReasonCode,
    SchedulingPlan,
    SchedulingPolicy,
)
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator, requeued_claim
from controlplane.domain.scheduling.snapshots import RunningClaim, SchedulingSnapshot
from tests.unit.domain.scheduling.fleets import AT, NPU, claim, node, role, running, snapshot

LAB = QueueSnapshot(uid="lab", name="lab", max_running_per_user=3)
MAPS = QueueSnapshot(uid="maps", name="maps", parent="lab", max_running_per_user=2)
SPEECH = QueueSnapshot(uid="speech", name="speech", parent="lab")


def held_by(user: str, at_work: RunningClaim) -> RunningClaim:
    return replace(at_work, user=user)


def decide(seen: SchedulingSnapshot) -> SchedulingPlan:
    return plan_cycle(seen, SchedulingPolicy(), AT)


def placed(decided: SchedulingPlan) -> set[str]:
    return {each.claim for each in decided.placements}


def refusal(decided: SchedulingPlan, uid: str) -> PendingClaim:
    return next(each for each in decided.pending if each.claim == uid)


def test_within_one_plan_a_person_gets_no_more_than_the_limit_and_others_get_theirs() -> None:
    asked = [claim(f"a{n}", queue="maps", minute=n, user="ada") for n in range(4)]
    asked.append(claim("b", queue="maps", minute=9, user="bo"))

    decided = decide(snapshot(node("n"), claims=asked, queues=(LAB, MAPS)))

    assert placed(decided) == {"a0", "a1", "b"}
    refused = refusal(decided, "a2")
    assert refused.code is PendingReasonCode.USER_LIMIT
    assert refused.reason == "ada has 2 of at most 2 admitted claims in queue maps"
    assert refused.numbers == {"held": 2, "limit": 2}


def test_what_runs_counts_up_the_tree_until_it_has_stopped() -> None:
    at_work = [
        held_by("ada", running("r1", {"n": [0]}, queue="maps")),
        held_by("ada", running("r2", {"n": [1]}, queue="speech")),
        held_by("ada", replace(running("r3", {"n": [2]}, queue="speech"), revoking=True)),
    ]
    asked = claim("a", queue="maps", user="ada")

    decided = decide(
        snapshot(node("n"), claims=[asked], running=at_work, queues=(LAB, MAPS, SPEECH))
    )

    assert refusal(decided, "a").reason == "ada has 3 of at most 3 admitted claims in queue lab"


def test_a_claim_of_nobody_is_not_limited() -> None:
    asked = [claim(f"a{n}", queue="maps") for n in range(5)]
    assert len(placed(decide(snapshot(node("n"), claims=asked, queues=(LAB, MAPS))))) == 5


def test_a_limit_of_none_at_all_lets_nobody_in() -> None:
    asked = claim("a", queue="maps", user="ada")
    shut = replace(MAPS, parent=None, max_running_per_user=0)
    assert not placed(decide(snapshot(node("n"), claims=[asked], queues=(shut,))))


def test_a_closed_queue_is_told_before_a_limit() -> None:
    asked = claim("a", queue="maps", user="ada")
    shut = replace(MAPS, parent=None, max_running_per_user=0, open=False)
    decided = decide(snapshot(node("n"), claims=[asked], queues=(shut,)))
    assert refusal(decided, "a").code is PendingReasonCode.QUEUE_CLOSED


def test_others_stop_for_no_more_claims_of_a_person_than_may_run() -> None:
    guaranteed_queue = replace(
        MAPS, parent=None, max_running_per_user=1, entitlements={NPU: ChipQuota(guaranteed=8)}
    )
    batch = QueueSnapshot(uid="batch", name="batch")
    at_work = [running(f"r{n}", {"n": [n]}, queue="batch") for n in range(8)]
    asked = [claim(f"a{n}", queue="maps", minute=n, user="ada") for n in range(2)]

    decided = decide(
        snapshot(node("n"), claims=asked, running=at_work, queues=(guaranteed_queue, batch))
    )

    assert {each.beneficiary for each in decided.revocations} == {"a0"}
    assert refusal(decided, "a1").reason == (
        "ada has 0 of at most 1 admitted claims in queue maps; other claims of ada that come first: 1"
    )


def test_a_claim_that_keeps_room_is_not_passed_by_others_of_its_person() -> None:
    alone = replace(MAPS, parent=None, max_running_per_user=1)
    at_work = [running("r", {"n": range(6)}, queue="maps", ends_in=timedelta(hours=1))]
    gang = claim("gang", role(8), queue="maps", user="ada")
    small = claim("small", queue="maps", minute=1, runtime=timedelta(minutes=5), user="ada")

    decided = decide(snapshot(node("n"), claims=[gang, small], running=at_work, queues=(alone,)))

    assert not placed(decided)
    assert refusal(decided, "small").code is PendingReasonCode.USER_LIMIT


def test_a_claim_at_the_limit_keeps_no_room_from_anybody() -> None:
    alone = replace(MAPS, parent=None, max_running_per_user=1)
    at_work = [held_by("ada", running("r", {"n": range(6)}, queue="maps"))]
    gang = claim("gang", role(8), queue="maps", user="ada")
    small = claim("small", queue="maps", minute=1, user="bo")

    decided = decide(snapshot(node("n"), claims=[gang, small], running=at_work, queues=(alone,)))

    assert placed(decided) == {"small"}
    assert not decided.reservations


def test_the_person_stays_with_a_claim_while_it_runs_and_when_it_waits_again() -> None:
    asked = claim("a", queue="maps", user="ada")
    timeline = SnapshotSimulator(snapshot(node("n"), claims=[asked], queues=(LAB, MAPS)))
    (placement,) = decide(timeline.snapshot()).placements

    timeline.start(placement, at=AT)

    (at_work,) = timeline.running
    assert (at_work.user, requeued_claim(at_work, at=AT).user) == ("ada", "ada")
