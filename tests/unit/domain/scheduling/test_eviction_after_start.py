"""Random histories: who starts is not evicted by the next cycle, as long as nothing has changed."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from datetime import datetime, timedelta

from controlplane.domain.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.scheduling.cycle import plan
from controlplane.domain.scheduling.plans import SchedulerState
from controlplane.domain.scheduling.policies import Policy
from controlplane.domain.scheduling.snapshots import ClaimView
from controlplane.domain.scheduling.timelines import Timeline, waits_again
from tests.unit.domain.scheduling import promises
from tests.unit.domain.scheduling.fleets import AT, GPU, NPU, claim, hours, role, snapshot
from tests.unit.domain.scheduling.test_histories import LEAVES, QUEUES, fleet

SEEDS = range(int(os.environ.get("NINEFOLD_SEEDS", "40")))


def pending(chance: random.Random, number: int, at: datetime) -> ClaimView:
    """A claim of which no other asks for the same CPU and memory."""
    cards = chance.choice([1, 1, 2, 4, 8])
    shape = replace(
        role(cards, chance.randint(1, 3)),
        limits=Resources(
            cpu=Millicpu(number), memory=Bytes(chance.choice([0, GIB, 5 * GIB]) + number)
        ),
    )
    asked = claim(
        f"c{number}",
        shape,
        queue=chance.choice(LEAVES),
        chips=chance.choice([(NPU,), (NPU,), (GPU,), (GPU, NPU)]),
        priority=chance.randint(0, 2),
        within=chance.choice(["", "", "leaf"]),
        runtime=chance.choice([None, hours(1), hours(5)]),
        tolerations=chance.choice([(), ("dedicated",)]),
    )
    return replace(asked, created_at=at)


def two_cycles(
    timeline: Timeline, policy: Policy, at: datetime, state: SchedulerState
) -> tuple[SchedulerState, int, list[str]]:
    """Commit a plan and make the next: state and evictions of the first, and the claims that the second evicts."""
    seen = timeline.snapshot()
    decided = plan(seen, policy, at, state)
    promises.check(seen, decided)
    started = {each.claim for each in decided.placements}
    for placement in decided.placements:
        runtime = timeline.claim(placement.claim).runtime or hours(2)
        timeline.start(placement, at=at, ends_at=at + runtime)
    for revocation in decided.revocations:
        timeline.revoke(revocation)
    nominated = {card.nominated_for for host in seen.nodes for card in host.cards}
    again = plan(timeline.snapshot(), policy, at, decided.state)
    victims = [each.claim for each in again.revocations if each.claim in started]
    return decided.state, len(decided.revocations), [] if started & nominated else victims


def evicted_after_start(seed: int) -> tuple[int, list[str]]:
    """Evictions of one history, and the claims that were evicted by the cycle after the one that started them.

    Cycles that start a claim for which cards are nominated are not judged: what it leaves of them comes free for
    claims that the cycle has refused by then.
    """
    chance, now, number = random.Random(seed), AT, 0
    timeline, state = Timeline(snapshot(*fleet(), queues=QUEUES)), SchedulerState()
    evictions, found = 0, []
    for _ in range(60):
        match chance.choice(["submit", "submit", "end", "end", "stop", "wait", "plan", "plan"]):
            case "submit":
                for _ in range(chance.randint(1, 4)):
                    number += 1
                    timeline.submit(pending(chance, number, now))
            case "end" if timeline.running:
                timeline.end(chance.choice(timeline.running).uid)
            case "stop":
                for each in timeline.running:
                    if each.revoking:
                        timeline.end(each.uid)
                        timeline.submit(waits_again(each, at=now))
            case "wait":
                now += timedelta(minutes=chance.randint(1, 90))
            case "plan":
                policy = Policy(reservations=chance.choice([0, 1, 8]))
                state, more, victims = two_cycles(timeline, policy, now, state)
                evictions += more
                found += victims
    return evictions, found


def test_whoever_starts_is_not_evicted_by_the_next_cycle() -> None:
    """At most one eviction in fifty is: what comes free within a plan may go to a claim that is evicted next."""
    histories = [evicted_after_start(seed) for seed in SEEDS]
    evictions = sum(count for count, _ in histories)
    found = [victim for _, victims in histories for victim in victims]
    assert evictions > 2 * len(SEEDS), "histories without evictions show nothing"
    assert 50 * len(found) <= evictions
