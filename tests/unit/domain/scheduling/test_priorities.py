"""An urgent claim takes the place of a less urgent one of its own queue, and of nobody else."""

from __future__ import annotations

from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from tests.unit.domain.scheduling.decisions import (
    BATCH,
    RESEARCH,
    decide,
    lent,
    stopped,
)
from tests.unit.domain.scheduling.fleets import (
    NPU,
    claim,
    node,
    role,
    running,
    snapshot,
)


def test_an_urgent_claim_takes_the_place_of_a_less_urgent_one_of_its_queue() -> None:
    seen = snapshot(
        node("n", 4),
        claims=[claim("urgent", role(2), priority=5)],
        running=[
            running("low", {"n": [0, 1]}, priority=1),
            running("high", {"n": [2, 3]}, priority=5),
        ],
    )

    (revocation,) = decide(seen).revocations

    assert revocation.claim == "low"
    assert revocation.reason == (
        "preempted by a claim of priority 5 in the same queue; the priority of this claim is 1"
    )


def test_priority_gives_no_right_to_the_cards_of_another_queue() -> None:
    seen = snapshot(
        node("n", 4),
        claims=[claim("urgent", role(2), priority=5)],
        running=[lent("other", 0, 1, 2, 3)],
        queues=(QueueSnapshot(uid="research", name="research"), BATCH),
    )

    assert decide(seen).revocations == ()


def test_a_queue_may_forbid_preemption() -> None:
    seen = snapshot(
        node("n", 4),
        claims=[claim("urgent", priority=5)],
        running=[running("low", {"n": [0, 1, 2, 3]})],
        queues=[QueueSnapshot(uid="research", name="research", preempts=False)],
    )

    assert decide(seen).revocations == ()


def test_an_urgent_claim_makes_room_below_its_queues_cap() -> None:
    capped = QueueSnapshot(uid="research", name="research", entitlements={NPU: ChipQuota(cap=4)})
    seen = snapshot(
        node("n", 8),
        claims=[claim("urgent", role(2), priority=5)],
        running=[running("low", {"n": [0, 1]}), running("high", {"n": [2, 3]}, priority=5)],
        queues=[capped],
    )

    assert stopped(decide(seen)) == ["low"]


def test_borrowers_go_before_the_less_urgent_of_the_own_queue() -> None:
    seen = snapshot(
        node("n", 4),
        claims=[claim("urgent", role(2), priority=5)],
        running=[running("own", {"n": [0, 1]}), lent("borrower", 2, 3, priority=9)],
        queues=(RESEARCH, BATCH),
    )

    assert stopped(decide(seen)) == ["borrower"]
