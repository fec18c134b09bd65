"""Searches for room are bounded in each cycle; no number of claims that find none keeps another from its turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.common.resources import GIB, Bytes, Resources
from controlplane.domain.quotas.claims import GangShape, RoleShape
from controlplane.domain.quotas.queues import QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import (
    PendingReasonCode,
    SchedulerState,
    SchedulingPlan,
    SchedulingPolicy,
)
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, SchedulingSnapshot
from tests.properties import examples
from tests.unit.domain.scheduling.fleets import AT, claim, node, role, running, snapshot

#: Most searches for one claim of these tests: one for room, and one or two for the reason why there is none.
SEARCHES = 3
BUDGET = 60
QUEUES = tuple(QueueSnapshot(uid=name, name=name) for name in "abc")


def hopeless(number: int, *, queue: str = "a", priority: int = 0) -> ClaimSnapshot:
    """One card, with more memory than is free beside any; no two ask for the same."""
    shape = GangShape(
        roles=(
            RoleShape(
                name="trainer",
                replicas=1,
                cards=1,
                limits=Resources(memory=Bytes(40 * GIB + number)),
            ),
        )
    )
    asked = claim(f"h{number:04}", queue=queue, priority=priority, minute=-1000 + number)
    return replace(asked, shape=shape)


def fleet(claims: Sequence[ClaimSnapshot]) -> SchedulingSnapshot:
    """On each node a card and 32 GiB are free; 100 GiB would be, if what runs ended."""
    at_work = [
        replace(
            running(f"r{each}", {f"n{each}": (0,)}, queue="c"),
            shape=GangShape(roles=(role(1, memory=68),)),
        )
        for each in range(2)
    ]
    hosts = [
        replace(
            node(f"n{each}", 2, memory=100),
            allocated=Resources(memory=Bytes(68 * GIB)),
        )
        for each in range(2)
    ]
    return snapshot(*hosts, running=at_work, claims=claims, queues=QUEUES)


def started_in(
    seen: SchedulingSnapshot,
    policy: SchedulingPolicy,
    wanted: str,
    *,
    most: int,
    state: SchedulerState | None = None,
    arrive: Callable[[int], list[ClaimSnapshot]] = lambda cycle: [],
) -> int:
    """In which cycle from now on the claim is placed."""
    for cycle in range(1, most + 1):
        found: SchedulingPlan = plan_cycle(seen, policy, AT, state)
        if wanted in {each.claim for each in found.placements}:
            return cycle
        assert not found.placements
        state = found.state
        seen = replace(seen, claims=(*seen.claims, *arrive(cycle)))
    pytest.fail(f"{wanted} was not placed within {most} cycles")


def bound(claims: int) -> int:
    """Cycles of one round, as docs/scheduling.md has it."""
    return ceil(2 * SEARCHES * claims / BUDGET) + 1


@settings(max_examples=examples(60), deadline=None)
@given(
    queues=st.lists(st.sampled_from("abc"), min_size=1, max_size=150),
    priorities=st.lists(st.integers(0, 3), min_size=1, max_size=7),
    queue=st.sampled_from("abc"),
    reservations=st.sampled_from([0, 1]),
)
def test_a_claim_that_fits_starts_within_one_round_behind_any_number_that_do_not(
    queues: list[str], priorities: list[int], queue: str, reservations: int
) -> None:
    claims = [
        hopeless(number, queue=each, priority=priorities[number % len(priorities)])
        for number, each in enumerate(queues)
    ]
    seen = fleet([*claims, claim("fits", queue=queue)])
    policy = SchedulingPolicy(attempts_per_cycle=BUDGET, reservations=reservations)

    assert started_in(seen, policy, "fits", most=bound(len(claims) + 1))


def test_newcomers_of_higher_priority_that_do_not_fit_do_not_prolong_the_round() -> None:
    claims = [hopeless(number) for number in range(100)]
    policy = SchedulingPolicy(attempts_per_cycle=BUDGET, reservations=0)

    def arrive(cycle: int) -> list[ClaimSnapshot]:
        return [hopeless(1000 + 50 * cycle + each, priority=2) for each in range(50)]

    seen = fleet([*claims, claim("fits", queue="a")])
    assert started_in(seen, policy, "fits", most=bound(101), arrive=arrive) > 1


def test_whatever_state_another_process_left_a_claim_is_tried_within_two_rounds() -> None:
    claims = [hopeless(number) for number in range(100)]
    policy = SchedulingPolicy(attempts_per_cycle=BUDGET, reservations=0)
    found = plan_cycle(fleet(claims), policy, AT)
    assert found.state.untried

    seen = fleet([*claims, claim("fits", queue="a", minute=1)])
    assert started_in(seen, policy, "fits", most=2 * bound(101), state=found.state)
    assert started_in(seen, policy, "fits", most=bound(101), state=SchedulerState())


def test_queues_take_turns_so_that_a_short_queue_does_not_wait_for_a_long_one() -> None:
    claims = [hopeless(number, priority=1) for number in range(400)]
    seen = fleet([*claims, hopeless(900, queue="b"), claim("fits", queue="b")])
    policy = SchedulingPolicy(attempts_per_cycle=BUDGET, reservations=0)

    assert started_in(seen, policy, "fits", most=2) == 2


def test_in_one_queue_a_later_claim_starts_only_after_those_before_it_were_tried_in_the_round() -> (
    None
):
    claims = [hopeless(number) for number in range(90)]
    first, second = claim("first", queue="a"), claim("second", role(name="b"), queue="a", minute=1)
    seen = fleet([*claims, first, second])
    policy, state = SchedulingPolicy(attempts_per_cycle=BUDGET, reservations=0), SchedulerState()
    for _ in range(bound(92)):
        found = plan_cycle(seen, policy, AT, state)
        state = found.state
        if found.placements:
            break
    assert [each.claim for each in found.placements] == ["first", "second"]


def test_claims_at_the_front_are_tried_in_every_cycle() -> None:
    """What comes free during a round goes to the most urgent, not to whoever has the turn."""
    urgent = hopeless(0, priority=9)
    claims = [urgent, *(hopeless(number) for number in range(1, 100))]
    policy = SchedulingPolicy(attempts_per_cycle=BUDGET, reservations=0)
    state = plan_cycle(fleet(claims), policy, AT).state
    assert urgent.equivalence_class not in state.untried

    roomy = fleet(claims)
    roomy = replace(roomy, nodes=(*roomy.nodes, node("n9", 1, memory=64)), running=roomy.running)
    found = plan_cycle(roomy, policy, AT, state)
    assert [each.claim for each in found.placements] == [urgent.uid]


def test_without_a_shortage_of_searches_there_is_no_round() -> None:
    claims = [hopeless(number) for number in range(10)]
    found = plan_cycle(fleet(claims), SchedulingPolicy(), AT)
    assert not found.state.untried
    assert PendingReasonCode.NOT_EVALUATED not in {each.code for each in found.pending}

    enough = snapshot(node("n", 8), claims=[claim(f"c{each}") for each in range(5)])
    found = plan_cycle(enough, SchedulingPolicy(placements_per_cycle=2), AT)
    assert not found.state.untried, "priority decides who is placed next"
    assert found.unfinished
