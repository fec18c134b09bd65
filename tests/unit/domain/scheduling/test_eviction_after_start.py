"""Random histories: no claim is evicted by the cycle after its start, as long as nothing else changes."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta

from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import (
    ClaimPlacement,
    PendingReasonCode,
    SchedulerState,
    SchedulingPlan,
    SchedulingPolicy,
)
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator, requeued_claim
from controlplane.domain.scheduling.snapshots import ClaimSnapshot
from tests.properties import examples
from tests.unit.domain.scheduling import plan_invariants
from tests.unit.domain.scheduling.fleets import AT, GPU, NPU, claim, hours, node, role, snapshot
from tests.unit.domain.scheduling.test_histories import LEAVES, QUEUES, fleet

#: From the first in which a start is withdrawn.
SEEDS = range(22, 22 + examples(30))


def pending(chance: random.Random, number: int, at: datetime) -> ClaimSnapshot:
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
    )
    return replace(asked, created_at=at)


def commit(timeline: SnapshotSimulator, decided: SchedulingPlan, at: datetime) -> None:
    """Change the fleet as the controller does."""
    for uid in decided.state.deferred:
        timeline.release_nominated(uid)
    for placement in decided.placements:
        runtime = timeline.claim(placement.claim).runtime
        timeline.start(placement, at=at, ends_at=None if runtime is None else at + runtime)
    for revocation in decided.revocations:
        timeline.revoke(revocation)


class History:
    """A fleet whose next cycle is planned after each cycle, before anything else happens."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = AT
        self.timeline = SnapshotSimulator(snapshot(*fleet(), queues=QUEUES))
        self.state = SchedulerState()
        self.submitted = 0
        #: Of all cycles.
        self.evictions = self.withdrawn = 0
        #: Claims that were evicted by the cycle after the one that started them.
        self.evicted_after_start: list[str] = []

    def run(self) -> None:
        for _ in range(60):
            events = ["submit", "submit", "end", "end", "stop", "wait", "plan", "plan"]
            getattr(self, f"_{self.chance.choice(events)}")()

    def _submit(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            self.submitted += 1
            self.timeline.submit(pending(self.chance, self.submitted, self.now))

    def _end(self) -> None:
        if self.timeline.running:
            self.timeline.end(self.chance.choice(self.timeline.running).uid)

    def _stop(self) -> None:
        for each in self.timeline.running:
            if each.revoking:
                self.timeline.end(each.uid)
                self.timeline.submit(requeued_claim(each, at=self.now))

    def _wait(self) -> None:
        self.now += timedelta(minutes=self.chance.randint(1, 90))

    def _plan(self) -> None:
        policy = SchedulingPolicy(reservations=self.chance.choice([0, 1, 8]))
        seen = self.timeline.snapshot()
        decided = plan_cycle(seen, policy, self.now, self.state)
        plan_invariants.check(seen, decided)
        commit(self.timeline, decided, self.now)
        self.state = decided.state
        self.evictions += len(decided.revocations)
        self.withdrawn += len(decided.state.deferred)
        started = {each.claim for each in decided.placements}
        following = plan_cycle(self.timeline.snapshot(), policy, self.now, self.state)
        self.evicted_after_start += [
            each.claim for each in following.revocations if each.claim in started
        ]


def test_no_claim_is_evicted_by_the_cycle_after_its_start() -> None:
    histories = [History(seed) for seed in SEEDS]
    for history in histories:
        history.run()
    assert sum(each.evictions for each in histories) > len(SEEDS), "few evictions show nothing"
    assert any(each.withdrawn for each in histories), "no start was ever withdrawn"
    found = {seed: each.evicted_after_start for seed, each in zip(SEEDS, histories, strict=True)}
    assert not any(found.values()), found


def test_a_claim_that_would_be_evicted_gives_its_nominated_cards_to_the_one_that_would_evict_it() -> (
    None
):
    """Cards were freed for one claim; a more urgent claim of its queue that came since wants them."""
    host = node("n", 2)
    host = replace(host, cards=tuple(replace(card, nominated_for="first") for card in host.cards))
    first, urgent = claim("first", role(2)), claim("urgent", role(2), priority=1, minute=1)
    timeline = SnapshotSimulator(snapshot(host, claims=(first, urgent)))

    decided = plan_cycle(timeline.snapshot(), SchedulingPolicy(), AT)
    assert decided.placements == ()
    assert decided.state.deferred == {"first"}
    reasons = {each.claim: each for each in decided.pending}
    assert reasons["first"].code is PendingReasonCode.RESERVED
    assert "for a claim of queue research" in reasons["first"].reason

    commit(timeline, decided, AT)
    following = plan_cycle(timeline.snapshot(), SchedulingPolicy(), AT, decided.state)
    assert [each.claim for each in following.placements] == ["urgent"]
    assert following.state.deferred == frozenset()


def test_the_next_cycle_follows_at_once_where_a_start_was_withdrawn() -> None:
    state = SchedulerState(deferred=frozenset({"c"}))
    placement = ClaimPlacement(claim="d", chip=NPU, replicas=(), reason="room")
    assert SchedulingPlan(placements=(placement,), state=state).unfinished
    assert not SchedulingPlan(state=state).unfinished, "the next cycle would decide the same"
