"""EASY backfill on the Philly jobs, with the runtimes that the product's scheduler estimates.

One line in order of arrival. The first that does not fit has a reservation: the *shadow time* at which it fits if
running jobs end when they are expected to, and the nodes that it takes then. Those behind it start if they fit
now and do not delay it: they are expected to end before the shadow time, or the nodes that they take have room for
both then. (Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995; Mu'alem and Feitelson, IEEE TPDS 2001.) A job
that outlives its estimate is expected to run twice as long (Tsafrir et al., IEEE TPDS 2007). A job of which
nothing is known ends never, as far as reservations go.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.scheduling.philly import CARDS_OF_NODE
from tests.benchmarks.scheduling.replays import Estimates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.scheduling.philly import Job, Seconds

#: [nodes]: cards.
Cards = NDArray[np.int64]


@dataclass(slots=True)
class _Running:
    job: Job
    nodes: Cards
    started: float
    #: Seconds from the start.
    expected: float

    def ends(self, now: float) -> float:
        """When it is expected to end, in the future."""
        while self.started + self.expected <= now:
            self.expected = max(1.0, 2 * self.expected)
        return self.started + self.expected


class _Shadow(NamedTuple):
    time: float
    #: Free at that time on each node beside the reservation.
    free: Cards


class Easy:
    """The line and the cluster."""

    def __init__(self, nodes: int) -> None:
        self.free: Cards = np.full(nodes, CARDS_OF_NODE, dtype=np.int64)
        self.waiting: list[tuple[Job, float]] = []
        self.running: dict[int, _Running] = {}

    def start_all(self, now: float) -> list[Job]:
        """Start whoever may start now."""
        started: list[Job] = []
        while self.waiting and self._start(*self.waiting[0], self.free, now):
            started.append(self.waiting.pop(0)[0])
        if len(self.waiting) > 1 and self.free.any():
            started += self._backfill(self.shadow(now), now)
        return started

    def shadow(self, now: float) -> _Shadow:
        """The reservation of the first in line."""
        job, _ = self.waiting[0]
        free = self.free.copy()
        time = now
        for time, number in sorted((each.ends(now), key) for key, each in self.running.items()):
            held = self.running[number]
            free[held.nodes] += held.job.cards_of_replica
            if (nodes := _fitting(job, free)) is not None:
                free[nodes] -= job.cards_of_replica
                return _Shadow(time, free)
        raise RuntimeError(f"job {job.number} does not fit into the empty cluster")

    def end(self, job: Job) -> None:
        held = self.running.pop(job.number)
        self.free[held.nodes] += job.cards_of_replica

    def _backfill(self, shadow: _Shadow, now: float) -> list[Job]:
        started: list[Job] = []
        left = [self.waiting[0]]
        # Who asks for as much as one that did not fit does not fit either.
        refused = {True: 1 << 30, False: 1 << 30}
        for job, expected in self.waiting[1:]:
            short = expected < np.inf and now + expected <= shadow.time
            free = self.free if short else np.minimum(self.free, shadow.free)
            if job.cards < refused[short] and self._start(job, expected, free, now):
                if not short:
                    shadow.free[self.running[job.number].nodes] -= job.cards_of_replica
                started.append(job)
                continue
            refused[short] = min(refused[short], job.cards)
            left.append((job, expected))
        self.waiting = left
        return started

    def _start(self, job: Job, expected: float, free: Cards, now: float) -> bool:
        nodes = _fitting(job, free)
        if nodes is None:
            return False
        self.free[nodes] -= job.cards_of_replica
        self.running[job.number] = _Running(job, nodes, now, expected)
        return True


def _fitting(job: Job, free: Cards) -> Cards | None:
    """Nodes for it, those with the fewest free cards first; None if it does not fit."""
    enough = np.flatnonzero(free >= job.cards_of_replica)
    if len(enough) < job.replicas:
        return None
    return enough[np.argsort(free[enough], kind="stable")[: job.replicas]]


def easy(jobs: Sequence[Job], *, nodes: int) -> Seconds:
    """Waits in seconds, by number."""
    line, estimates = Easy(nodes), Estimates()
    waiting_times = np.zeros(len(jobs))
    ends: list[tuple[float, int]] = []
    arrived = 0
    while arrived < len(jobs) or line.waiting:
        next_arrival = jobs[arrived].arrives if arrived < len(jobs) else np.inf
        now = min(next_arrival, ends[0][0] if ends else np.inf)
        while ends and ends[0][0] <= now:
            ended = jobs[heappop(ends)[1]]
            line.end(ended)
            estimates.learn(ended)
        while arrived < len(jobs) and jobs[arrived].arrives <= now:
            job = jobs[arrived]
            known = estimates.at(now).remaining(queue=job.queue, cards=job.cards)
            line.waiting.append((job, np.inf if known is None else known.total_seconds()))
            arrived += 1
        for job in line.start_all(now):
            waiting_times[job.number] = now - job.arrives
            heappush(ends, (now + job.duration, job.number))
    return waiting_times
