"""Each refusal and each choice says why, in words and numbers that agree."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import PendingClaim, PendingReasonCode, SchedulingPolicy
from controlplane.domain.scheduling.snapshots import NodeSnapshot, SchedulingSnapshot
from tests.properties import examples
from tests.unit.domain.scheduling.fleets import (
    AT,
    GPU,
    NPU,
    RINGS,
    claim,
    node,
    role,
    running,
    snapshot,
)
from tests.unit.domain.scheduling.test_cycle_properties import snapshots


def only_refusal(seen: SchedulingSnapshot) -> PendingClaim:
    (refusal,) = plan_cycle(seen, SchedulingPolicy(), AT).pending
    return refusal


def research(**kwargs: object) -> QueueSnapshot:
    return replace(QueueSnapshot(uid="research", name="research"), **kwargs)  # type: ignore[arg-type]


def allocated_node(name: str, *, memory: int = 0, cpu: int = 0) -> NodeSnapshot:
    """Four cards, 12 cores and 32 GiB, of which so much is in use."""
    return replace(
        node(name, 4, memory=32, cpu=12, owns_cpu=True),
        allocated=Resources(cpu=Millicpu(cpu * 1000), memory=Bytes(memory * GIB)),
    )


LEAVES = [node(f"{leaf}{place}", 4, domains={"leaf": leaf}) for leaf in "xy" for place in "12"]

REFUSALS = {
    "busy": (
        snapshot(node("n", 4, busy=[0, 1, 2]), claims=[claim("x", role(2))]),
        PendingReasonCode.NO_FREE_CARDS,
        f"needs 1 × 2 cards of {NPU}; 1 of 4 are free, at most 1 on one node",
    ),
    "fragmented": (
        snapshot(node("a", 4), node("b", 4, busy=[0, 1]), claims=[claim("x", role(3, 2))]),
        PendingReasonCode.NO_FREE_CARDS,
        f"needs 2 × 3 cards of {NPU}; 6 of 8 are free, at most 4 on one node",
    ),
    "more than there is": (
        snapshot(node("a", 4), node("b", 2), claims=[claim("x", role(3, 2))]),
        PendingReasonCode.NEVER_FITS,
        (
            f"needs 2 × 3 cards of {NPU} under one cluster; with all cards free, "
            "the best one would fit 1 of 2 replicas"
        ),
    ),
    "elastic": (
        snapshot(node("n", 4, busy=[0]), claims=[claim("x", role(2, 4, least=2))]),
        PendingReasonCode.NO_FREE_CARDS,
        f"needs 2–4 × 2 cards of {NPU}; 3 of 4 are free, at most 3 on one node",
    ),
    "elastic, and rigid beside it": (
        snapshot(
            node("n", 4, busy=[0, 1]),
            claims=[claim("x", role(2, 4, least=1, name="a"), role(1, 2, least=2, name="b"))],
        ),
        PendingReasonCode.NO_FREE_CARDS,
        f"needs 1–4 × 2 cards and 2 × 1 card of {NPU}; 2 of 4 are free, at most 2 on one node",
    ),
    "no such level, one replica": (
        snapshot(LEAVES[0], claims=[claim("x", role(1), within="rack")]),
        PendingReasonCode.NO_SUCH_LEVEL,
        "needs nodes under one rack; the levels of the network topology are node, leaf, cluster",
    ),
    "no such level, several": (
        snapshot(node("n"), claims=[claim("x", role(1, 2), within="rack")]),
        PendingReasonCode.NO_SUCH_LEVEL,
        "needs nodes under one rack; the levels of the network topology are node, cluster",
    ),
    "too large": (
        snapshot(node("n", 4), claims=[claim("x", role(8))]),
        PendingReasonCode.NEVER_FITS,
        f"needs 8 × {NPU} on one node; the largest node has 4",
    ),
    "no such size": (
        snapshot(node("n", 8, geometry=RINGS), claims=[claim("x", role(3))]),
        PendingReasonCode.NEVER_FITS,
        f"needs 3 × {NPU} on one node; the nodes support 1, 2, 4, 8",
    ),
    "two rings": (
        snapshot(node("n", 8, busy=[0, 1, 4, 5], geometry=RINGS), claims=[claim("x", role(4))]),
        PendingReasonCode.NOT_TOGETHER,
        (
            f"needs 4 × {NPU} with direct links on one node; 4 are free on the best "
            "node, but not in one ring or in whole pairs"
        ),
    ),
    "another chip": (
        snapshot(node("n", 4, chip=GPU), claims=[claim("x")]),
        PendingReasonCode.NO_SUCH_CHIP,
        f"needs {NPU}; chips in the fleet: {GPU}",
    ),
    "an empty fleet": (
        snapshot(claims=[claim("x")]),
        PendingReasonCode.NO_SUCH_CHIP,
        f"needs {NPU}; chips in the fleet: none",
    ),
    "labels": (
        snapshot(
            node("n", 4, labels={"pool": "serve"}),
            claims=[claim("x", selector={"pool": "train", "zone": "b"})],
        ),
        PendingReasonCode.NO_SUCH_NODE,
        f"needs a node with {NPU} and the labels pool=train, zone=b; no node matches",
    ),
    "a domain": (
        snapshot(
            *LEAVES,
            claims=[claim("x", role(4, 2), within="leaf")],
            running=[running("r", {"x1": [0]}), running("s", {"y1": [0]})],
        ),
        PendingReasonCode.NO_DOMAIN,
        f"needs 2 × 4 cards of {NPU} under one leaf; the best leaf fits 1 of 2 replicas",
    ),
    "more than a domain": (
        snapshot(*LEAVES, claims=[claim("x", role(4, 3), within="leaf")]),
        PendingReasonCode.NEVER_FITS,
        f"needs 3 × 4 cards of {NPU} under one leaf; with all cards free, the best one would fit 2 of 3 replicas",
    ),
    "memory": (
        snapshot(
            node("a", 2, memory=8),
            node("b", 2, memory=100, busy=[0, 1]),
            node("c", 2, memory=200, schedulable=False),
            claims=[claim("x", role(memory=16))],
        ),
        PendingReasonCode.NO_MEMORY,
        "needs 16.0 GiB of memory on one node; at most 8.0 GiB is free on a node",
    ),
    "memory of each": (
        snapshot(allocated_node("a", memory=8), claims=[claim("x", role(1, 2, memory=16))]),
        PendingReasonCode.NO_MEMORY,
        "needs 16.0 GiB of memory on one node for each replica; at most 24.0 GiB is free on a node",
    ),
    "CPU": (
        snapshot(allocated_node("a", cpu=4), claims=[claim("x", role(cpu=12))]),
        PendingReasonCode.NO_CPU,
        "needs 12 CPU cores on one node; at most 8 are free on a node",
    ),
    "CPU of each": (
        snapshot(allocated_node("a", cpu=3), claims=[claim("x", role(1, 2, cpu=6))]),
        PendingReasonCode.NO_CPU,
        "needs 6 CPU cores on one node for each replica; at most 9 are free on a node",
    ),
    "more memory than a node has": (
        snapshot(
            node("a", 2, memory=8),
            node("g", 2, chip=GPU, memory=100),
            claims=[claim("x", role(memory=16))],
        ),
        PendingReasonCode.NEVER_FITS,
        "needs 16.0 GiB of memory on one node; the largest node has 8.0 GiB",
    ),
    "more CPU than a node has": (
        snapshot(node("a", 2, cpu=8, owns_cpu=True), claims=[claim("x", role(cpu=12))]),
        PendingReasonCode.NEVER_FITS,
        "needs 12 CPU cores on one node; the largest node has 8",
    ),
    "a cap": (
        snapshot(
            node("n", 8),
            claims=[claim("x", role(3))],
            running=[running("r", {"n": [0, 1]})],
            queues=[research(entitlements={NPU: ChipQuota(cap=4)})],
        ),
        PendingReasonCode.QUEUE_CAP,
        f"needs 3 × {NPU}; queue research uses 2 of its cap of 4",
    ),
    "a cap above, in all": (
        snapshot(
            node("n", 8),
            claims=[claim("x", role(3))],
            running=[running("r", {"n": [0, 1]})],
            queues=[
                research(parent="lab"),
                QueueSnapshot(uid="lab", name="lab", total=ChipQuota(cap=4)),
            ],
        ),
        PendingReasonCode.QUEUE_CAP,
        "needs 3 × cards of any chip; queue lab uses 2 of its cap of 4",
    ),
    "closed": (
        snapshot(node("n", 4), claims=[claim("x")], queues=[research(open=False)]),
        PendingReasonCode.QUEUE_CLOSED,
        "queue research is closed; it admits no claims until it is opened",
    ),
    "no borrower": (
        snapshot(
            node("n", 8),
            claims=[claim("x", role(3))],
            running=[running("r", {"n": [0, 1]})],
            queues=[research(entitlements={NPU: ChipQuota(guaranteed=4)}, borrows=False)],
        ),
        PendingReasonCode.NO_BORROWING,
        f"needs 3 × {NPU}; queue research uses 2 of its guaranteed 4 and does not borrow",
    ),
    "nothing to borrow": (
        snapshot(
            node("n", 8),
            claims=[claim("x", role(5))],
            queues=[
                research(),
                QueueSnapshot(
                    uid="lab",
                    name="lab",
                    entitlements={NPU: ChipQuota(reserved=4, guaranteed=4)},
                ),
            ],
        ),
        PendingReasonCode.NO_BORROWING,
        (
            f"needs 5 × {NPU}, more than the guaranteed quota of queue research; 8 "
            "are free, of which 4 may be borrowed"
        ),
    ),
}


@pytest.mark.parametrize(("seen", "code", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_each_refusal_says_what_stands_in_the_way(
    seen: SchedulingSnapshot, code: PendingReasonCode, reason: str
) -> None:
    refusal = only_refusal(seen)

    assert (refusal.code, refusal.reason) == (code, reason)


def test_who_is_owed_cards_that_a_reserve_keeps_hears_so() -> None:
    lab = QueueSnapshot(
        uid="lab", name="lab", entitlements={NPU: ChipQuota(reserved=3, guaranteed=3)}
    )
    mine = research(entitlements={NPU: ChipQuota(guaranteed=4)})
    seen = snapshot(node("n", 4), claims=[claim("x", role(2))], queues=[mine, lab])

    refusal = only_refusal(seen)

    assert refusal.code is PendingReasonCode.NO_BORROWING
    assert (
        refusal.reason == f"needs 2 × {NPU}; 4 are free, but 3 of them are reserved by other queues"
    )


def test_who_may_not_borrow_what_is_not_even_free_hears_that_it_is_not_free() -> None:
    lab = QueueSnapshot(
        uid="lab", name="lab", entitlements={NPU: ChipQuota(reserved=4, guaranteed=4)}
    )
    seen = snapshot(node("n", 4, busy=[0]), claims=[claim("x", role(4))], queues=[research(), lab])

    assert only_refusal(seen).code is PendingReasonCode.NO_FREE_CARDS


def test_the_preferred_chip_gives_the_reason() -> None:
    seen = snapshot(
        node("a", 4, busy=range(4)),
        node("b", 4, chip=GPU, busy=range(4)),
        claims=[claim("x", chips=(GPU, NPU))],
    )

    assert GPU in only_refusal(seen).reason


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (
            snapshot(node("n", 4), claims=[claim("x", role(2))]),
            f"1 × 2 cards of {NPU} on n, which leaves the fewest unusable cards",
        ),
        (
            snapshot(node("a", 4), node("b", 4), claims=[claim("x", role(4, 2))]),
            f"2 × 4 cards of {NPU} on 2 nodes (a, b), the smallest network domain with enough free capacity",
        ),
        (
            snapshot(
                *(node(f"n{number}", 1) for number in range(5)), claims=[claim("x", role(1, 5))]
            ),
            (
                f"5 × 1 card of {NPU} on 5 nodes (n0, n1, n2, n3…), the smallest "
                "network domain with enough free capacity"
            ),
        ),
    ],
    ids=["one node", "two nodes", "many nodes"],
)
def test_each_placement_says_why_there(seen: SchedulingSnapshot, reason: str) -> None:
    (placement,) = plan_cycle(seen, SchedulingPolicy(), AT).placements

    assert placement.reason == reason
    assert placement.numbers["cards"] == sum(one.count for one in placement.replicas)


def test_memory_that_is_promised_is_not_free() -> None:
    full = replace(node("n", 1, memory=8), allocated=Resources(memory=Bytes(9 * GIB)))

    refusal = only_refusal(snapshot(full, claims=[claim("x", role(memory=1))]))

    assert refusal.reason.endswith("at most 0 B is free on a node")


@given(snapshots())
@settings(max_examples=examples(80))
def test_numbers_of_a_refusal_stand_in_its_words(seen: SchedulingSnapshot) -> None:
    for refusal in plan_cycle(seen, SchedulingPolicy(), AT).pending:
        numbers = refusal.numbers
        if refusal.code in (PendingReasonCode.QUEUE_CAP, PendingReasonCode.NEVER_FITS):
            assert all(str(number) in refusal.reason for number in numbers.values())
        if refusal.code is PendingReasonCode.NO_FREE_CARDS:
            assert f"{numbers['free']} of {numbers['total']} are free" in refusal.reason
            assert f"at most {numbers['best_node']} on one node" in refusal.reason
