"""Whatever happens to a fleet, in whatever order: no plan ever breaks a promise.

A machine lives through histories that hypothesis makes up: claims come, run, save, end and are cancelled, cards
break and heal, nodes are drained, queues get other rights; and now and then the scheduler is asked.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle, plan_incrementally
from controlplane.domain.scheduling.plans import (
    ClaimEviction,
    SchedulerState,
    SchedulingPlan,
    SchedulingPolicy,
)
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator, requeued_claim
from controlplane.domain.scheduling.snapshots import (
    CardSelection,
    ClaimSnapshot,
    NodeSnapshot,
    SchedulingSnapshot,
)
from tests.properties import examples
from tests.unit.domain.scheduling import plan_invariants
from tests.unit.domain.scheduling.fleets import (
    AT,
    GPU,
    NPU,
    RINGS,
    claim,
    hours,
    node,
    role,
    snapshot,
)

QUEUES = (
    QueueSnapshot(
        uid="lab",
        name="lab",
        entitlements={NPU: ChipQuota(guaranteed=12, cap=24)},
        total=ChipQuota(cap=28),
    ),
    QueueSnapshot(
        uid="vision",
        name="vision",
        parent="lab",
        entitlements={NPU: ChipQuota(reserved=2, guaranteed=8)},
    ),
    QueueSnapshot(
        uid="speech", name="speech", parent="lab", entitlements={NPU: ChipQuota(guaranteed=4)}
    ),
    QueueSnapshot(
        uid="product",
        name="product",
        entitlements={
            NPU: ChipQuota(reserved=4, guaranteed=8),
            GPU: ChipQuota(guaranteed=4, cap=6),
        },
    ),
    QueueSnapshot(uid="batch", name="batch", weight=2.0),
)
LEAVES = ("vision", "speech", "product", "batch")


def fleet() -> list[NodeSnapshot]:
    rings = [
        node(f"n{each}", geometry=RINGS, domains={"leaf": f"l{each // 2}"}, memory=32)
        for each in range(3)
    ]
    chosen = node("n3", 4, binding=CardSelection.NODE, domains={"leaf": "l1"})
    gpus = [
        node("g0", 4, chip=GPU),
        node("g1", 4, chip=GPU, cluster="c2", labels={"pool": "dedicated"}),
    ]
    return [*rings, chosen, *gpus]


@st.composite
def requests(draw: st.DrawFn) -> ClaimSnapshot:
    share = draw(st.sampled_from([1000, 1000, 1000, 250]))
    # Mostly, no two ask for the same.
    memory = draw(st.sampled_from([0, 0, 6])) * GIB + draw(st.integers(0, 2**20))
    cpu = draw(st.integers(0, 2000))
    shapes = []
    for place in range(draw(st.integers(1, 2))):
        cards, replicas = draw(st.sampled_from([0, 1, 1, 2, 4, 8])), draw(st.integers(1, 4))
        shape = role(
            cards,
            replicas,
            name=f"r{place}",
            share=share if cards == 1 else 1000,
            least=draw(st.integers(0, replicas)),
        )
        limits = Resources(cpu=Millicpu(cpu), memory=Bytes(memory))
        shapes.append(replace(shape, limits=limits))
    return claim(
        "",
        *shapes,
        queue=draw(st.sampled_from(LEAVES)),
        chips=draw(st.sampled_from([(NPU,), (NPU,), (GPU,), (GPU, NPU)])),
        equal_chips=draw(st.integers(1, 2)),
        priority=draw(st.integers(0, 2)),
        within=draw(st.sampled_from(["", "", "leaf"])),
        runtime=draw(st.sampled_from([None, hours(1), hours(5)])),
        selector=draw(st.sampled_from([{}, {}, {"pool": "dedicated"}])),
        user=draw(st.sampled_from(["", "ada", "bo"])),
    )


class SimulatorWithQueueChanges(SnapshotSimulator):
    """With operators who change queues while work runs."""

    def change_queue(self, queue: QueueSnapshot) -> None:
        """Other rights for the queue; what it holds stays."""
        held = self._queues[queue.uid]
        self._queues[queue.uid] = replace(queue, used=held.used, shared=held.shared)


class Histories(RuleBasedStateMachine):
    """One company's fleet; ``now`` moves only forward."""

    def __init__(self) -> None:
        super().__init__()
        self.timeline = SimulatorWithQueueChanges(snapshot(*fleet(), queues=QUEUES))
        self.now = AT
        self.asked = 0
        self.state = SchedulerState()
        #: Those who wait, with what each was told last by the planner.
        self.pending_reasons: dict[str, str] = {}

    @initialize(queues=st.permutations(QUEUES))
    def found(self, queues: list[QueueSnapshot]) -> None:
        """The order in which queues are read does not matter."""
        self.timeline = SimulatorWithQueueChanges(snapshot(*fleet(), queues=queues))

    # -- Claims --

    @rule(wanted=st.lists(requests(), min_size=1, max_size=5))
    def claims_are_submitted(self, wanted: list[ClaimSnapshot]) -> None:
        for each in wanted:
            self.asked += 1
            self.timeline.submit(replace(each, uid=f"c{self.asked}", created_at=self.now))

    @precondition(lambda self: self.timeline.running)
    @rule(which=st.integers(0, 99))
    def something_ends(self, which: int) -> None:
        at_work = self.timeline.running
        self.timeline.end(at_work[which % len(at_work)].uid)

    @precondition(lambda self: self.timeline.running)
    @rule(which=st.integers(0, 99))
    def something_saves(self, which: int) -> None:
        at_work = self.timeline.running
        self.timeline.save(at_work[which % len(at_work)].uid, at=self.now)

    @precondition(lambda self: self.timeline.waiting)
    @rule(which=st.integers(0, 99))
    def a_claim_is_withdrawn(self, which: int) -> None:
        waiting = self.timeline.waiting
        self.timeline.withdraw(waiting[which % len(waiting)].uid)

    @rule()
    def evicted_claims_stop(self) -> None:
        for running in self.timeline.running:
            if running.revoking:
                self.timeline.end(running.uid)
                self.timeline.submit(requeued_claim(running, at=self.now))

    @rule(minutes=st.integers(1, 90))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    # -- Hardware and operators --

    @rule(
        which=st.integers(0, 5),
        index=st.integers(0, 7),
        state=st.sampled_from([CardState.USABLE, CardState.ISOLATED, CardState.NO_NEW_WORK]),
    )
    def a_card_breaks_or_heals(self, which: int, index: int, state: CardState) -> None:
        host = self.timeline.snapshot().nodes[which]
        cards = tuple(
            replace(card, state=state) if card.index == index else card for card in host.cards
        )
        self.timeline.change_node(replace(host, cards=cards))

    @rule(which=st.integers(0, 5), schedulable=st.booleans())
    def a_node_is_cordoned_or_taken_back(self, which: int, schedulable: bool) -> None:
        host = self.timeline.snapshot().nodes[which]
        self.timeline.change_node(replace(host, schedulable=schedulable))

    @rule(which=st.integers(0, 5))
    def a_node_is_drained(self, which: int) -> None:
        host = self.timeline.snapshot().nodes[which]
        self.timeline.change_node(replace(host, schedulable=False))
        for running in self.timeline.running:
            if any(replica.node == host.uid for replica in running.replicas):
                self.timeline.revoke(ClaimEviction(claim=running.uid, beneficiary="", reason=""))

    @rule(
        uid=st.sampled_from([queue.uid for queue in QUEUES]),
        rights=st.tuples(*[st.integers(0, 12)] * 3).map(sorted),
        capped=st.booleans(),
        opened=st.integers(0, 9).map(bool),
        borrows=st.integers(0, 4).map(bool),
        lends=st.integers(0, 4).map(bool),
        per_user=st.sampled_from([None, None, 0, 1, 3]),
    )
    def a_queue_gets_other_rights(
        self,
        uid: str,
        rights: list[int],
        capped: bool,
        opened: bool,
        borrows: bool,
        lends: bool,
        per_user: int | None,
    ) -> None:
        queue = self.timeline.snapshot().queues[uid]
        stated = ChipQuota(
            reserved=rights[0], guaranteed=rights[1], cap=rights[2] if capped else None
        )
        self.timeline.change_queue(
            replace(
                queue,
                entitlements={**queue.entitlements, NPU: stated},
                open=opened,
                borrows=borrows,
                lends=lends,
                max_running_per_user=per_user,
            )
        )

    # -- The scheduler --

    @rule(
        policy=st.builds(
            SchedulingPolicy,
            placements_per_cycle=st.sampled_from([1, 3, 200]),
            attempts_per_cycle=st.sampled_from([2, 2000]),
            preemption=st.booleans(),
            backfill=st.booleans(),
            reservations=st.sampled_from([0, 1, 8]),
        )
    )
    def the_scheduler_is_asked_in_some_way(self, policy: SchedulingPolicy) -> None:
        self._schedule(policy)

    @rule()
    def the_scheduler_is_asked(self) -> None:
        self._schedule(SchedulingPolicy())

    def _schedule(self, policy: SchedulingPolicy) -> None:
        seen = self.timeline.snapshot()
        state = self.state
        decided = plan_cycle(seen, policy, self.now, state)
        plan_invariants.check(seen, decided)
        assert decided == plan_cycle(shuffled(seen), policy, self.now, state)
        assert len(decided.placements) <= policy.placements_per_cycle
        assert policy.preemption or not decided.revocations
        self._planner_agrees(seen, policy, decided)
        for uid in decided.state.deferred:
            self.timeline.release_nominated(uid)
        for placement in decided.placements:
            ends_at = self.now + (self.timeline.claim(placement.claim).runtime or hours(2))
            self.timeline.start(placement, at=self.now, ends_at=ends_at)
        for revocation in decided.revocations:
            self.timeline.revoke(revocation)

    def _planner_agrees(
        self, seen: SchedulingSnapshot, policy: SchedulingPolicy, decided: SchedulingPlan
    ) -> None:
        """What need not be planned again is what a plan would say again."""
        found = plan_incrementally(seen, policy, self.state, self.now)
        self.state = found.state
        assert (found.placements, found.revocations) == (decided.placements, decided.revocations)
        placed = {each.claim for each in found.placements}
        waiting = {claim.uid for claim in seen.claims} - placed
        self.pending_reasons = {
            uid: reason for uid, reason in self.pending_reasons.items() if uid in waiting
        }
        self.pending_reasons |= {each.claim: each.reason for each in found.pending}
        assert self.pending_reasons == {each.claim: each.reason for each in decided.pending}

    @invariant()
    def the_commit_is_valid(self) -> None:
        seen = self.timeline.snapshot()
        on_cards = {card.held_by for host in seen.nodes for card in host.cards if card.held_by}
        assert on_cards <= {running.uid for running in seen.running}
        for host in seen.nodes:
            assert all(0 <= card.shared <= 1000 for card in host.cards)
            assert host.allocated.memory >= 0
        for queue in seen.queues.values():
            assert all(cards >= 0 for cards in queue.used.values())


def shuffled(seen: SchedulingSnapshot) -> SchedulingSnapshot:
    """The same, told in another order; only the order of nodes decides between equal ones."""
    return replace(
        seen,
        claims=seen.claims[::-1],
        running=seen.running[::-1],
        queues=dict(reversed(list(seen.queues.items()))),
    )


Histories.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=40)
test_no_plan_breaks_an_invariant = Histories.TestCase
