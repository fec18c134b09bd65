"""The Philly trace: jobs of fourteen and more teams on one cluster, and bounds that their waits are held against.

82,247 jobs of late 2017 (Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training
Workloads", USENIX ATC 2019), each with its submission, duration, cards, and the virtual cluster that it came from;
here that is a queue. Nodes have eight cards; a job of more than eight is a gang of whole nodes.

- *FIFO*: one line in order of arrival; who is first and does not fit holds up everybody.
- *First that fits*: the same line, but who fits passes who does not.
- *SRTF*: an oracle knows every duration, and moves cards at any moment and for nothing to those with the least
  left. It sees cards, not nodes, so no scheduler can come near it in practice; it bounds them from below.
"""

from __future__ import annotations

import csv
from bisect import insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import heappop, heappush
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.scheduling.traces import DataAbsent

CARDS_OF_NODE = 8

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    #: Place in the trace by arrival; later jobs have larger numbers.
    number: int
    queue: str
    #: Seconds since the first arrival.
    arrives: float
    #: Seconds.
    duration: float
    cards: int

    @property
    def replicas(self) -> int:
        """Nodes on which it runs."""
        return -(-self.cards // CARDS_OF_NODE)

    @property
    def cards_of_replica(self) -> int:
        """Cards on each of them; the trace has no gang that would want less of its last one than this gives."""
        return -(-self.cards // self.replicas)


def load(folder: Path) -> tuple[Job, ...]:
    """The jobs in order of arrival.

    :raises DataAbsent: if the trace is not in the folder.
    """
    path = folder / "philly" / "philly.csv"
    if not path.is_file():
        raise DataAbsent(
            f"{path} is not there: pass the folder that holds openb/, fgd/ and philly/"
        )
    with path.open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["timestamp"])
    times = [datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC) for row in rows]
    return tuple(
        Job(
            number=number,
            queue=row["cluster"],
            arrives=(time - times[0]).total_seconds(),
            duration=float(row["duration"]),
            cards=int(row["num_gpus"]),
        )
        for number, (row, time) in enumerate(zip(rows, times, strict=True))
    )


def between(jobs: Sequence[Job], first: float, last: float) -> tuple[Job, ...]:
    """Those that arrive in that span, numbered anew."""
    chosen = [job for job in jobs if first <= job.arrives < last]
    return tuple(
        Job(
            number=number,
            queue=job.queue,
            arrives=job.arrives - first,
            duration=job.duration,
            cards=job.cards,
        )
        for number, job in enumerate(chosen)
    )


class Pool:
    """Nodes of eight cards; small jobs go where the fewest cards stay free."""

    def __init__(self, nodes: int) -> None:
        #: Nodes with so many free cards, in order of their numbers.
        self._with: list[list[int]] = [[] for _ in range(CARDS_OF_NODE + 1)]
        self._with[CARDS_OF_NODE] = list(range(nodes))
        self._free = [CARDS_OF_NODE] * nodes

    def take(self, job: Job) -> tuple[int, ...] | None:
        """Nodes for it; None if it does not fit."""
        cards = job.cards_of_replica
        chosen: list[int] = []
        for free in range(cards, CARDS_OF_NODE + 1):
            chosen += self._with[free][: job.replicas - len(chosen)]
        if len(chosen) < job.replicas:
            return None
        for node in chosen:
            self._change(node, -cards)
        return tuple(chosen)

    def give(self, job: Job, nodes: Sequence[int]) -> None:
        for node in nodes:
            self._change(node, job.cards_of_replica)

    def _change(self, node: int, cards: int) -> None:
        self._with[self._free[node]].remove(node)
        self._free[node] += cards
        insort(self._with[self._free[node]], node)


@dataclass(slots=True)
class _Line:
    """What waits, in order of arrival, and what of it may start."""

    passing: bool
    waiting: deque[Job] = field(default_factory=deque)

    def starting(self, pool: Pool) -> list[tuple[Job, tuple[int, ...]]]:
        started: list[tuple[Job, tuple[int, ...]]] = []
        blocked: deque[Job] = deque()
        # Who asks for as much as one that did not fit does not fit either.
        refused = 1 << 30
        while self.waiting:
            job = self.waiting.popleft()
            nodes = pool.take(job) if job.cards < refused else None
            if nodes is not None:
                started.append((job, nodes))
                continue
            blocked.append(job)
            refused = min(refused, job.cards)
            if not self.passing or refused == 1:
                break
        blocked.extend(self.waiting)
        self.waiting = blocked
        return started


def in_line(jobs: Sequence[Job], *, nodes: int, passing: bool) -> Seconds:
    """Waits in seconds, by number: strictly in order of arrival, or letting those pass who fit."""
    pool, line = Pool(nodes), _Line(passing)
    waiting_times = np.zeros(len(jobs))
    ends: list[tuple[float, int, tuple[int, ...]]] = []
    arrived = 0
    while arrived < len(jobs) or line.waiting:
        next_arrival = jobs[arrived].arrives if arrived < len(jobs) else np.inf
        now = min(next_arrival, ends[0][0] if ends else np.inf)
        while ends and ends[0][0] <= now:
            _, number, held = heappop(ends)
            pool.give(jobs[number], held)
        while arrived < len(jobs) and jobs[arrived].arrives <= now:
            line.waiting.append(jobs[arrived])
            arrived += 1
        for job, held in line.starting(pool):
            waiting_times[job.number] = now - job.arrives
            heappush(ends, (now + job.duration, job.number, held))
    return waiting_times


def least_left_first(jobs: Sequence[Job], *, nodes: int) -> Seconds:
    """Waits in seconds, by number, with an oracle: time in the system less the duration."""
    capacity = nodes * CARDS_OF_NODE
    cards = np.array([job.cards for job in jobs])
    left = np.array([job.duration for job in jobs], dtype=np.float64)
    waiting_times = np.zeros(len(jobs))
    active = np.zeros(0, dtype=np.int64)
    running = np.zeros(0, dtype=np.int64)
    now, arrived = 0.0, 0
    while arrived < len(jobs) or len(active):
        next_arrival = jobs[arrived].arrives if arrived < len(jobs) else np.inf
        next_end = now + left[running].min() if len(running) else np.inf
        passed = min(next_arrival, next_end) - now
        now += passed
        left[running] -= passed
        for number in running[left[running] <= 1e-6]:
            waiting_times[number] = now - jobs[number].arrives - jobs[number].duration
        active = active[left[active] > 1e-6]
        while arrived < len(jobs) and jobs[arrived].arrives <= now:
            active = np.append(active, arrived)
            arrived += 1
        active = active[np.argsort(left[active], kind="stable")]
        running = _fitting(active, cards[active], capacity)
    return waiting_times


def _fitting(order: NDArray[np.int64], cards: NDArray[np.int64], free: int) -> NDArray[np.int64]:
    """Those of the order that get cards, one after the other; who does not fit is passed."""
    chosen: list[NDArray[np.int64]] = []
    while free and len(order):
        fits = int(np.searchsorted(np.cumsum(cards), free, side="right"))
        chosen.append(order[:fits])
        free -= int(cards[:fits].sum())
        order, cards = order[fits + 1 :], cards[fits + 1 :]
        small = cards <= free
        order, cards = order[small], cards[small]
    return np.concatenate(chosen) if chosen else order[:0]
