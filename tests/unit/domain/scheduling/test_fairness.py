"""Whoever comes first is not passed for ever, whatever it waits for: room, leave of its queue, a faster chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.domain.common.resources import GIB, Bytes, Resources
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import PendingReasonCode, SchedulingPolicy
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, NodeSnapshot, SchedulingSnapshot
from tests.unit.domain.scheduling import plan_invariants
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


def queue(
    name: str,
    *,
    reserved: int = 0,
    guaranteed: int = 0,
    cap: int | None = None,
    borrows: bool = True,
) -> QueueSnapshot:
    stated = ChipQuota(reserved=reserved, guaranteed=max(guaranteed, reserved), cap=cap)
    return QueueSnapshot(uid=name, name=name, entitlements={NPU: stated}, borrows=borrows)


def cycles_until_it_starts(
    large: ClaimSnapshot, queues: Sequence[QueueSnapshot], stream: str
) -> int:
    """Eight cards; every five minutes comes a claim of one card for ten. 50 where it never starts."""
    world = SnapshotSimulator(snapshot(node("n"), queues=queues))
    for number in range(50):
        at = AT + timedelta(minutes=5 * number)
        for view in world.running:
            if view.ends_at is not None and view.ends_at <= at:
                world.end(view.uid)
        if number == 1:
            world.submit(large)
        small = claim(f"s{number}", queue=stream, minute=5 * number, runtime=hours(1 / 6))
        world.submit(small)
        seen = world.snapshot()
        found = plan_cycle(seen, SchedulingPolicy(), at)
        plan_invariants.check(seen, found)
        for placement in found.placements:
            world.start(placement, at=at, ends_at=at + timedelta(minutes=10))
        if world.runs("large"):
            return number
    return 50


@pytest.mark.parametrize(
    ("cards", "of", "stream", "queues"),
    [
        (4, "own", "own", [queue("own", guaranteed=4, borrows=False)]),
        (6, "batch", "batch", [queue("product", reserved=2), queue("batch")]),
        (6, "batch", "more", [queue("product", reserved=2), queue("batch"), queue("more")]),
        (4, "batch", "batch", [queue("batch", cap=4)]),
    ],
    ids=["own guarantee", "beside a reserve", "two that borrow", "cap"],
)
def test_nobody_uses_up_what_a_claim_before_it_waits_to_be_allowed(
    cards: int, of: str, stream: str, queues: list[QueueSnapshot]
) -> None:
    large = claim("large", role(cards), queue=of, minute=4, runtime=hours(1))

    assert cycles_until_it_starts(large, queues, stream) == 2


@pytest.mark.parametrize(
    "large",
    [
        claim("large", role(7), queue="batch"),
        claim("large", role(1, 7), queue="batch"),
        claim("large", role(6, memory=99), queue="batch"),
    ],
    ids=["above what is lent", "in parts", "no memory"],
)
def test_who_may_never_have_it_stops_nobody(large: ClaimSnapshot) -> None:
    seen = snapshot(
        node("n"),
        claims=[large, claim("small", queue="batch", minute=1)],
        queues=[queue("product", reserved=2), queue("batch")],
        running=[running("busy", {"n": [0]}, queue="batch")],
    )

    assert [each.claim for each in plan_cycle(seen, SchedulingPolicy(), AT).placements] == ["small"]


def test_who_is_owed_cards_passes_who_waits_to_borrow() -> None:
    seen = snapshot(
        node("n"),
        claims=[
            claim("large", role(6), queue="batch", priority=1),
            claim("owed", role(2), queue="lab"),
        ],
        queues=[queue("product", reserved=2), queue("lab", guaranteed=2), queue("batch")],
        running=[running("busy", {"n": [0]}, queue="batch", preemptible=False)],
    )

    assert [each.claim for each in plan_cycle(seen, SchedulingPolicy(), AT).placements] == ["owed"]


def impossible(number: int) -> ClaimSnapshot:
    """A gang for which one node is missing, as it is cordoned; each of another kind."""
    return claim(f"i{number}", role(8, 5), minute=-60, runtime=hours(1) + timedelta(seconds=number))


def test_claims_that_cannot_be_had_now_leave_others_their_reservations() -> None:
    nodes = [node(f"n{each}") for each in range(4)]
    work = [running(f"r{each}", {f"n{each}": range(8)}, ends_in=hours(1)) for each in range(4)]
    more = [
        replace(impossible(each), uid=f"m{each}", shape=claim("", role(1, memory=500 + each)).shape)
        for each in range(40)
    ]
    seen = snapshot(
        *nodes,
        node("cordoned", schedulable=False),
        claims=[*(impossible(each) for each in range(40)), *more, claim("large", role(8, 2))],
        running=work,
    )

    assert [each.claim for each in plan_cycle(seen, SchedulingPolicy(), AT).reservations] == [
        "large"
    ]


def mixed(count: int, fast_ends: Sequence[float], slow: int) -> SchedulingSnapshot:
    """Equal claims of an hour, fast nodes that are busy, and idle ones at a third of the speed."""
    claims = [
        replace(
            claim(f"c{each}", role(8), chips=(GPU, NPU), minute=each, runtime=hours(1)),
            speeds={NPU: 1 / 3},
        )
        for each in range(count)
    ]
    nodes: list[NodeSnapshot] = [node(f"g{each}", chip=GPU) for each in range(len(fast_ends))]
    nodes += [node(f"n{each}") for each in range(slow)]
    work = [
        running(f"r{each}", {f"g{each}": range(8)}, chip=GPU, ends_in=hours(ends))
        for each, ends in enumerate(fast_ends)
    ]
    return snapshot(*nodes, claims=claims, running=work)


def test_only_as_many_wait_for_a_fast_chip_as_it_has_room_for() -> None:
    found = plan_cycle(mixed(10, [1, 1.5], 10), SchedulingPolicy(placements_per_cycle=99), AT)

    assert {each.claim: each.code for each in found.pending} == {
        "c0": PendingReasonCode.AWAITING_FASTER_CHIP,
        "c1": PendingReasonCode.AWAITING_FASTER_CHIP,
    }
    assert found.pending[0].reason == (
        f"needs 1 × 8 cards; {NPU} has free capacity, but waiting for {GPU} gives an earlier completion"
    )
    assert [each.nodes for each in found.reservations] == [("g0",), ("g1",)]
    assert {each.chip for each in found.placements} == {NPU}
    assert len(found.placements) == 8


def test_without_room_kept_for_it_no_claim_waits_for_a_fast_chip() -> None:
    found = plan_cycle(mixed(3, [1, 1, 1], 3), SchedulingPolicy(reservations=1), AT)

    assert [each.claim for each in found.pending] == ["c0"]
    assert len(found.placements) == 2


def test_a_claim_that_no_search_is_made_for_counts_as_an_attempt() -> None:
    """Each asks for other memory, so none is answered by what was found for another."""
    greedy = [
        replace(
            claim(f"k{each}", minute=-60),
            shape=claim("", replace(role(8), limits=Resources(memory=Bytes(GIB + each)))).shape,
        )
        for each in range(60)
    ]
    seen = snapshot(
        node("full", busy=[0]),
        node("idle", chip=GPU),
        claims=[*greedy, claim("want", chips=(GPU,))],
    )

    policy, cycles = SchedulingPolicy(attempts_per_cycle=20), 1
    found = plan_cycle(seen, policy, AT)
    while not found.placements:
        assert len(found.class_reasons) <= 20
        cycles += 1
        found = plan_cycle(seen, policy, AT, found.state)

    assert [each.claim for each in found.placements] == ["want"]
    assert 1 < cycles <= 2 * 61 / 20 + 1
