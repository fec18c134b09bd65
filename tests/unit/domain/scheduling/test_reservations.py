"""Room that is kept for who comes first, and who may use it meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.node_table import EmptyFleetCapacity, NodeTable
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.plans import PendingReasonCode, SchedulingPlan, SchedulingPolicy
from controlplane.domain.scheduling.reservations import ReservationPlanner
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, RunningClaim, SchedulingSnapshot
from tests.properties import examples
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

CALM = SchedulingPolicy(preemption=False)


def decide(seen: SchedulingSnapshot, policy: SchedulingPolicy = CALM) -> SchedulingPlan:
    return plan_cycle(seen, policy, AT)


def two_nodes(*claims: ClaimSnapshot, more: Iterable[RunningClaim] = ()) -> SchedulingSnapshot:
    """``a`` is half free for an hour and ``b`` full for three."""
    at_work = (
        running("short", {"a": [0, 1]}, ends_in=hours(1)),
        running("long", {"b": [0, 1, 2, 3]}, ends_in=hours(3)),
    )
    return snapshot(node("a", 4), node("b", 4), claims=claims, running=(*at_work, *more))


LARGE = claim("large", role(4))


def test_a_blocked_claim_keeps_the_nodes_where_it_can_start_first() -> None:
    (reservation,) = decide(two_nodes(LARGE)).reservations

    assert (reservation.claim, reservation.nodes, reservation.starts_at) == (
        "large",
        ("a",),
        AT + hours(1),
    )


def test_a_gang_waits_for_the_last_of_its_nodes() -> None:
    (reservation,) = decide(two_nodes(claim("gang", role(4, 2)))).reservations

    assert (set(reservation.nodes), reservation.starts_at) == ({"a", "b"}, AT + hours(3))


def test_a_claim_that_ends_in_time_is_backfilled_and_one_that_does_not_waits() -> None:
    seen = two_nodes(
        LARGE,
        claim("quick", runtime=hours(1), minute=1),
        claim("slow", runtime=hours(1.01), minute=2),
        claim("unknown", minute=3),
    )

    decided = decide(seen)

    assert [one.claim for one in decided.placements] == ["quick"]
    codes = {one.claim: one.code for one in decided.pending}
    assert codes["slow"] is codes["unknown"] is PendingReasonCode.RESERVED
    assert decided.pending[1].reason == (
        f"needs 1 × 1 card of {NPU}; the free capacity is reserved for a claim of queue research that comes first"
    )


def test_a_slower_chip_makes_a_claim_too_long_to_be_backfilled() -> None:
    quick = claim("quick", runtime=hours(1), minute=1)
    slower = ClaimSnapshot(
        uid="slower",
        queue="research",
        shape=quick.shape,
        chips=(NPU,),
        priority=0,
        created_at=quick.created_at,
        runtime=hours(0.75),
        speeds={NPU: 0.5},
    )

    assert decide(two_nodes(LARGE, slower)).placements == ()


def test_what_does_not_stand_in_the_way_goes_elsewhere() -> None:
    seen = two_nodes(LARGE, claim("small", minute=1))
    roomy = snapshot(*seen.nodes, node("c", 2), claims=seen.claims, running=seen.running)

    (placement,) = decide(roomy).placements

    assert (placement.claim, placement.replicas[0].node) == ("small", "c")


def test_without_backfill_nobody_uses_what_is_kept_and_anybody_what_is_not() -> None:
    seen = two_nodes(LARGE, claim("quick", runtime=timedelta(minutes=1), minute=1))
    strict = SchedulingPolicy(preemption=False, backfill=False)
    roomy = replace(seen, nodes=(*seen.nodes, node("c", 2)))

    assert decide(seen, strict).placements == ()
    assert [one.replicas[0].node for one in decide(roomy, strict).placements] == ["c"]


def test_no_more_claims_keep_room_than_the_policy_says() -> None:
    waiting = [claim(f"c{cards}", role(cards), minute=cards) for cards in (3, 4)]

    decided = decide(two_nodes(*waiting), SchedulingPolicy(preemption=False, reservations=1))

    assert [one.claim for one in decided.reservations] == ["c3"]


def test_reservations_do_not_count_on_the_same_nodes() -> None:
    first, second = decide(two_nodes(LARGE, claim("next", role(3), minute=1))).reservations

    assert (first.nodes, second.nodes) == (("a",), ("b",))
    assert second.starts_at == AT + hours(3)


def test_an_elastic_gang_keeps_room_for_its_fewest_replicas_only() -> None:
    (reservation,) = decide(two_nodes(claim("x", role(4, 2, least=1)))).reservations

    assert reservation.nodes == ("a",)


def test_what_never_fits_keeps_no_room() -> None:
    decided = decide(two_nodes(claim("huge", role(5)), claim("small", minute=1)))

    assert decided.reservations == ()
    assert [one.claim for one in decided.placements] == ["small"]


def test_work_whose_end_nobody_knows_is_taken_to_end_last() -> None:
    at_work = (
        running("endless", {"a": [0]}),
        running("long", {"b": [0, 1, 2, 3]}, ends_in=hours(9)),
    )
    seen = snapshot(node("a", 4), node("b", 4), claims=[LARGE], running=at_work)

    assert decide(seen).reservations[0].nodes == ("b",)


def test_where_no_end_is_known_room_is_kept_all_the_same() -> None:
    at_work = (running("old", {"a": [0]}, since=hours(9)), running("young", {"b": [0]}))
    seen = snapshot(
        node("a", 4), node("b", 4), claims=(LARGE, claim("small", minute=1)), running=at_work
    )

    decided = decide(seen)

    (reservation,) = decided.reservations
    assert (reservation.nodes, reservation.starts_at) == (("a",), None)
    assert [one.replicas[0].node for one in decided.placements] == ["b"]


def test_what_was_told_to_stop_or_is_overdue_ends_any_moment() -> None:
    overdue = running("late", {"a": [0]}, ends_in=-hours(1))
    seen = snapshot(node("a", 4), claims=[LARGE], running=[overdue])

    assert decide(seen).reservations[0].starts_at == AT


def test_smaller_claims_of_a_queue_do_not_use_up_what_is_left_below_its_cap() -> None:
    capped = QueueSnapshot(uid="research", name="research", entitlements={NPU: ChipQuota(cap=8)})
    seen = snapshot(
        node("n", 16),
        claims=(claim("large", role(6)), claim("small", minute=1)),
        running=[running("busy", {"n": [0, 1, 2, 3]})],
        queues=[capped],
    )

    decided = decide(seen)

    assert decided.placements == ()
    assert decided.pending[1].reason == (
        f"needs 1 × {NPU}; queue research uses 4 of its cap of 8, and 6 are reserved for other claims"
    )


def test_a_claim_larger_than_the_cap_stops_nobody() -> None:
    capped = QueueSnapshot(uid="research", name="research", entitlements={NPU: ChipQuota(cap=8)})
    seen = snapshot(
        node("n", 16), claims=(claim("huge", role(9)), claim("small", minute=1)), queues=[capped]
    )

    assert [one.claim for one in decide(seen).placements] == ["small"]


def test_who_is_owed_cards_passes_who_borrows() -> None:
    research = QueueSnapshot(
        uid="research", name="research", entitlements={NPU: ChipQuota(guaranteed=2)}
    )
    seen = snapshot(
        node("a", 4),
        claims=(claim("borrower", role(4), queue="batch", priority=1), claim("owed", role(2))),
        running=[running("busy", {"a": [0]}, queue="batch", ends_in=hours(1))],
        queues=(research, QueueSnapshot(uid="batch", name="batch")),
    )

    decided = decide(seen)

    assert [one.claim for one in decided.reservations] == ["borrower"]
    assert [one.claim for one in decided.placements] == ["owed"]


def two_chips(runtime: timedelta | None, *, slow: float) -> SchedulingSnapshot:
    """The faster chip is busy for an hour, the slower one is free."""
    wanted = claim("x", role(4), chips=(NPU, GPU), runtime=runtime)
    return snapshot(
        node("fast", 4),
        node("slow", 4, chip=GPU),
        claims=[replace(wanted, speeds={GPU: slow})],
        running=[running("busy", {"fast": [0]}, ends_in=hours(1))],
    )


def test_a_claim_waits_for_a_faster_chip_if_it_ends_sooner_so() -> None:
    decided = decide(two_chips(hours(4), slow=0.5))

    assert decided.placements == ()
    assert [(one.nodes, one.starts_at) for one in decided.reservations] == [
        (("fast",), AT + hours(1))
    ]


@pytest.mark.parametrize(("runtime", "slow"), [(hours(4), 0.9), (hours(0.5), 0.5), (None, 0.1)])
def test_a_claim_takes_a_slower_chip_if_it_ends_no_later_or_nobody_knows(
    runtime: timedelta | None, slow: float
) -> None:
    assert [one.chip for one in decide(two_chips(runtime, slow=slow)).placements] == [GPU]


SMALL = st.lists(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 6)), max_size=4), min_size=8, max_size=12
)


@given(SMALL, st.lists(st.integers(1, 6), min_size=4, max_size=4))
@settings(max_examples=examples(60))
def test_smaller_claims_that_keep_coming_never_delay_a_large_one(
    arrivals: list[list[tuple[int, int]]], ends: list[int]
) -> None:
    """The bound: it starts when what ran as it came first has ended, whatever arrives meanwhile."""
    at_work = [
        running(f"r{place}", {f"n{place}": [0, 1]}, ends_in=hours(hour))
        for place, hour in enumerate(ends)
    ]
    nodes = [node(f"n{place}", 4) for place in range(4)]
    world = SnapshotSimulator(
        snapshot(*nodes, claims=[claim("large", role(4, 2))], running=at_work)
    )
    bound = sorted(ends)[1]

    for hour, coming in enumerate(arrivals):
        at = AT + hours(hour)
        for view in world.running:
            if view.ends_at is not None and view.ends_at <= at:
                world.end(view.uid)
        for number, (cards, runtime) in enumerate(coming):
            uid = f"s{hour}.{number}"
            minute = 60 * hour + number + 1
            world.submit(claim(uid, role(cards), minute=minute, runtime=hours(runtime)))
        for placement in plan_cycle(world.snapshot(), CALM, at).placements:
            runtime_of = world.claim(placement.claim).runtime
            world.start(placement, at=at, ends_at=at + (runtime_of or hours(9)))
        if world.runs("large"):
            break

    assert world.runs("large")
    assert hour <= bound


WORK = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 9)), min_size=1, max_size=10
)


@given(WORK, st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=examples(100))
def test_the_earliest_start_is_what_trying_every_end_in_turn_finds(
    work: list[tuple[int, int, int]], cards: int, replicas: int
) -> None:
    free = {number: list(range(4)) for number in range(4)}
    at_work = []
    for number, (place, size, ends) in enumerate(work):
        if len(free[place]) >= size:
            taken = [free[place].pop() for _ in range(size)]
            held = {f"n{place}": taken}
            at_work.append(running(f"r{number}", held, ends_in=hours(ends)))
    seen = snapshot(
        *(node(f"n{number}", 4) for number in range(4)),
        claims=[claim("x", role(cards, replicas))],
        running=at_work,
    )
    (waiting,) = seen.claims
    if PlacementFinder(NodeTable(seen)).place(waiting, NPU) is not None:
        return

    starts = [
        ends
        for ends in sorted(view.ends_at for view in at_work if view.ends_at)
        if _fits_at(seen, waiting, ends)
    ]

    fleet = NodeTable(seen)
    reservations = ReservationPlanner(
        fleet=fleet,
        placer=PlacementFinder(fleet),
        capacity=EmptyFleetCapacity(fleet),
        running=seen.running,
        at=AT,
        backfill=True,
    )
    found = reservations.reserve(waiting, {NPU: False})
    assert found == (NPU if starts else None)
    assert [one.starts_at for one in reservations.reserved] == starts[:1]
    assert fleet.mark() == 0


def _fits_at(seen: SchedulingSnapshot, waiting: ClaimSnapshot, ends: object) -> bool:
    fleet = NodeTable(seen)
    for view in seen.running:
        if view.ends_at is not None and view.ends_at <= ends:  # type: ignore[operator]
            fleet.free(view)
    return PlacementFinder(fleet).place(waiting, NPU) is not None
