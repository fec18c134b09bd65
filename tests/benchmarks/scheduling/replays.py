"""The Philly jobs through the real cycle, in virtual time, with queues, gangs, reservations and backfill.

A round is held when something changed and there are free cards, at most once in so many seconds; jobs that arrive
meanwhile wait for it. What the cycle knows of a job's runtime is what jobs of its queue and size took that had
*ended* by the day before. Every placement is entered in books of the replay's own: all of a gang or nothing, no
card twice, no queue above its cap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush

import numpy as np

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import Resources
from controlplane.domain.quotas.claims import GangShape, RoleShape
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import ClaimPlacement, SchedulingPolicy
from controlplane.domain.scheduling.runtime_estimates import CompletedRun, RuntimeHistory
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator
from controlplane.domain.scheduling.snapshots import (
    CardSnapshot,
    ClaimSnapshot,
    NodeSnapshot,
    SchedulingSnapshot,
)
from tests.benchmarks.scheduling.invariants import Broken
from tests.benchmarks.scheduling.philly import CARDS_OF_NODE, Job, Seconds

#: Shown a snapshot, the seconds since the first arrival, and runtimes of what has ended.
Watch = Callable[[SchedulingSnapshot, float, RuntimeHistory], None]

CHIP = "gpu"
START = datetime(2017, 9, 1, tzinfo=UTC)
DAY = 86_400.0
#: Part of the cards that one queue may hold at most.
CAP = 0.75
#: The trace says nothing of checkpoints, so nothing is ever stopped.
POLICY = SchedulingPolicy(preemption=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    nodes: int
    queues: tuple[str, ...]

    @property
    def cap(self) -> int:
        return int(self.nodes * CARDS_OF_NODE * CAP)

    def empty(self) -> SchedulingSnapshot:
        """Each queue is guaranteed the same, lends what it does not use, and may hold no more than the cap."""
        even = self.nodes * CARDS_OF_NODE // len(self.queues)
        entitlement = ChipQuota(guaranteed=even, cap=self.cap)
        return SchedulingSnapshot(
            nodes=tuple(_node(number) for number in range(self.nodes)),
            claims=(),
            queues={
                name: QueueSnapshot(uid=name, name=name, entitlements={CHIP: entitlement})
                for name in self.queues
            },
        )


def _node(number: int) -> NodeSnapshot:
    return NodeSnapshot(
        uid=f"node-{number:04d}",
        name=f"node-{number:04d}",
        cluster="philly",
        cards=tuple(
            CardSnapshot(
                uid=f"card-{number:04d}-{index}", index=index, chip=CHIP, state=CardState.USABLE
            )
            for index in range(CARDS_OF_NODE)
        ),
        capacity=Resources(),
    )


@dataclass(slots=True)
class ReplayLedger:
    """Who holds what, by the placements alone."""

    cap: int
    cards: dict[str, str] = field(default_factory=dict)
    of_queue: Counter[str] = field(default_factory=Counter)

    def enter(self, job: Job, placement: ClaimPlacement) -> None:
        """:raises Broken: if the gang is not whole, a card has a holder, or the queue gets above its cap."""
        cards = [card for replica in placement.replicas for card in replica.cards]
        nodes = {replica.node for replica in placement.replicas}
        if len(cards) != job.replicas * job.cards_of_replica or (
            len(nodes) != job.replicas and job.cards_of_replica == CARDS_OF_NODE
        ):
            raise Broken(f"job {job.number} wants {job.cards} cards and got {len(cards)}")
        for card in cards:
            if card in self.cards:
                raise Broken(f"{card} has {self.cards[card]} and was given to {placement.claim}")
            self.cards[card] = placement.claim
        self.of_queue[job.queue] += len(cards)
        if self.of_queue[job.queue] > self.cap:
            raise Broken(f"{job.queue} holds {self.of_queue[job.queue]}, above {self.cap}")

    def leave(self, job: Job, cards: Sequence[str]) -> None:
        for card in cards:
            del self.cards[card]
        self.of_queue[job.queue] -= len(cards)


@dataclass(slots=True)
class Estimates:
    """Runtimes of jobs that have ended, learnt once a day."""

    learnt_at: float = -DAY
    ended: list[CompletedRun] = field(default_factory=list)
    history: RuntimeHistory = field(default_factory=RuntimeHistory)

    def at(self, now: float) -> RuntimeHistory:
        if now - self.learnt_at >= DAY:
            self.history = RuntimeHistory(self.ended)
            self.learnt_at = now
        return self.history

    def learn(self, job: Job) -> None:
        self.ended.append(
            CompletedRun(queue=job.queue, cards=job.cards, runtime=timedelta(seconds=job.duration))
        )


class Replay:
    """The trace, as it comes."""

    def __init__(
        self, jobs: Sequence[Job], *, nodes: int, every: float, watch: Watch | None = None
    ) -> None:
        """:param every: seconds between rounds, at the least.
        :param watch: is shown what each round is held over, before it is held.
        """
        cluster = Cluster(nodes=nodes, queues=tuple(sorted({job.queue for job in jobs})))
        self._jobs = jobs
        self._every = every
        self._watch = watch
        self._world = SnapshotSimulator(cluster.empty())
        self._ledger = ReplayLedger(cluster.cap)
        self._estimates = Estimates()
        self._free = nodes * CARDS_OF_NODE
        self._waiting = 0
        self._ends: list[tuple[float, int]] = []
        self.waiting_times: Seconds = np.zeros(len(jobs))
        self.cycles = 0

    def run(self) -> Seconds:
        """Waits in seconds, by number."""
        now, arrived = 0.0, 0
        while arrived < len(self._jobs) or self._waiting or self._ends:
            next_arrival = self._jobs[arrived].arrives if arrived < len(self._jobs) else np.inf
            event = min(next_arrival, self._ends[0][0] if self._ends else np.inf)
            if event == np.inf:
                raise Broken(f"{self._waiting} jobs wait for an empty cluster")
            now = max(now + self._every, event)
            while self._ends and self._ends[0][0] <= now:
                self._end(self._jobs[heappop(self._ends)[1]])
            while arrived < len(self._jobs) and self._jobs[arrived].arrives <= now:
                self._arrive(self._jobs[arrived], now)
                arrived += 1
            if self._waiting and self._free:
                self._round(now)
        return self.waiting_times

    def _round(self, now: float) -> None:
        self.cycles += 1
        snapshot = self._world.snapshot()
        if self._watch is not None:
            self._watch(snapshot, now, self._estimates.at(now))
        found = plan_cycle(snapshot, POLICY, START + timedelta(seconds=now))
        for placement in found.placements:
            self._start(placement, now)

    def _arrive(self, job: Job, now: float) -> None:
        self._waiting += 1
        self._world.submit(claim_of(job, history=self._estimates.at(now)))

    def _start(self, placement: ClaimPlacement, now: float) -> None:
        job = self._jobs[number_of(placement.claim)]
        runtime = self._world.claim(placement.claim).runtime
        self._ledger.enter(job, placement)
        at = START + timedelta(seconds=now)
        held = self._world.start(
            placement, at=at, ends_at=None if runtime is None else at + runtime
        )
        self._free -= len(held)
        self._waiting -= 1
        self.waiting_times[job.number] = now - job.arrives
        heappush(self._ends, (now + job.duration, job.number))

    def _end(self, job: Job) -> None:
        cards = self._world.end(uid_of(job))
        self._ledger.leave(job, cards)
        self._free += len(cards)
        self._estimates.learn(job)


def claim_of(job: Job, *, history: RuntimeHistory) -> ClaimSnapshot:
    """The job as it is submitted, with what is known of such jobs."""
    role = RoleShape(name="worker", replicas=job.replicas, cards=job.cards_of_replica)
    return ClaimSnapshot(
        uid=uid_of(job),
        queue=job.queue,
        shape=GangShape(roles=(role,)),
        chips=(CHIP,),
        priority=0,
        created_at=START + timedelta(seconds=job.arrives),
        runtime=history.remaining(queue=job.queue, cards=job.cards),
    )


def uid_of(job: Job) -> str:
    return f"job-{job.number}"


def number_of(uid: str) -> int:
    return int(uid.removeprefix("job-"))
