"""How long jobs wait: the Philly trace through the real cycle, beside FIFO, first fit, EASY and an oracle.

``python -m tests.benchmarks scheduling-waits --data FOLDER``. The fleet is such that the busiest month asks for
nine tenths of it. The others see every arrival and end at once; ours decides once in two minutes, and is held to
queues that are guaranteed the same and capped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path

import numpy as np

from tests.benchmarks.scheduling.easy import easy
from tests.benchmarks.scheduling.forecast_accuracy import Errors, Foretelling
from tests.benchmarks.scheduling.philly import (
    CARDS_OF_NODE,
    Job,
    Seconds,
    between,
    in_line,
    least_left_first,
    load,
)
from tests.benchmarks.scheduling.replays import DAY, Replay
from tests.benchmarks.scheduling.traces import DataAbsent

RESULTS = Path(__file__).resolve().parents[3] / "var" / "bench" / "scheduling-waits.json"
#: Of eight cards: 656 cards, of which jobs that arrive in October 2017 ask for 589 on average.
NODES = 82
#: Seconds.
BETWEEN_CYCLES = 120.0
#: Of the mean wait with FIFO.
GOAL = 0.4
#: The busiest three weeks, in days since the first arrival, and seconds between questions.
FORECAST_PERIOD = (20.0, 40.0)
BETWEEN_QUESTIONS = DAY

FIFO, FIRST_FIT, EASY = "FIFO", "first that fits", "EASY backfill"
ORACLE, OURS = "SRTF with an oracle", "ours"
#: Seconds of a slice of the trace, and the part of its cards that a slice's jobs ask for.
SLICE = 28 * DAY
LOAD = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTimes:
    """Of all jobs under one policy, in seconds."""

    policy: str
    mean: float
    median: float
    p90: float
    p99: float
    #: That it took to find out.
    took: float


#: Waits of those jobs on so many nodes.
POLICIES: Mapping[str, Callable[[Sequence[Job], int], Seconds]] = {
    FIFO: lambda jobs, nodes: in_line(jobs, nodes=nodes, passing=False),
    FIRST_FIT: lambda jobs, nodes: in_line(jobs, nodes=nodes, passing=True),
    EASY: lambda jobs, nodes: easy(jobs, nodes=nodes),
    ORACLE: lambda jobs, nodes: least_left_first(jobs, nodes=nodes),
    OURS: lambda jobs, nodes: Replay(jobs, nodes=nodes, every=BETWEEN_CYCLES).run(),
}


def measure(jobs: Sequence[Job]) -> dict[str, WaitingTimes]:
    """Every policy on the same jobs."""
    measured: dict[str, WaitingTimes] = {}
    for policy, wait in POLICIES.items():
        begin = time.perf_counter()
        waiting_times = wait(jobs, NODES)
        median, p90, p99 = np.quantile(waiting_times, (0.5, 0.9, 0.99)).tolist()
        measured[policy] = WaitingTimes(
            policy=policy,
            mean=float(waiting_times.mean()),
            median=median,
            p90=p90,
            p99=p99,
            took=time.perf_counter() - begin,
        )
    return measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Four weeks of the trace on an empty cluster of their own."""

    #: Days since the first arrival.
    first: float
    jobs: int
    nodes: int
    #: Mean wait in seconds, by policy.
    waiting_times: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """Ours against first fit."""
        return self.waiting_times[OURS] / self.waiting_times[FIRST_FIT]

    def line(self) -> str:
        columns = " | ".join(f"{wait:,.0f} s" for wait in self.waiting_times.values())
        return f"| {self.first:.0f} | {self.jobs:,} | {self.nodes} | {columns} | {self.ratio:.2f} |"


def slices(jobs: Sequence[Job]) -> Iterator[Slice]:
    """Of each four weeks, and the last four, on as many nodes as make it a busy cluster."""
    last = max(0.0, jobs[-1].arrives - SLICE)
    for first in (*np.arange(0.0, last, SLICE).tolist(), last):
        chosen = between(jobs, first, first + SLICE)
        asked = sum(job.duration * job.cards for job in chosen) / SLICE / CARDS_OF_NODE
        nodes = max(ceil(asked / LOAD), *(job.replicas for job in chosen))
        waiting_times = {
            policy: float(POLICIES[policy](chosen, nodes).mean())
            for policy in (FIFO, FIRST_FIT, EASY, OURS)
        }
        yield Slice(first=first / DAY, jobs=len(chosen), nodes=nodes, waiting_times=waiting_times)


def forecast(jobs: Sequence[Job]) -> Errors:
    """Errors of forecasts in a busy time that starts with an empty cluster."""
    first, last = FORECAST_PERIOD
    busy = between(jobs, first * DAY, last * DAY)
    watch = Foretelling(busy, every=BETWEEN_QUESTIONS)
    waiting_times = Replay(busy, nodes=NODES, every=BETWEEN_CYCLES, watch=watch).run()
    return watch.errors(waiting_times)


def table(measured: Mapping[str, WaitingTimes]) -> str:
    lines = ["| policy | mean wait | median | p90 | p99 | × FIFO | × oracle |", f"|{'---|' * 7}"]
    lines += [
        f"| {row.policy} | {row.mean:,.0f} s | {row.median:,.0f} s | {row.p90:,.0f} s "
        f"| {row.p99:,.0f} s | {row.mean / measured[FIFO].mean:.3f} "
        f"| {row.mean / measured[ORACLE].mean:.1f} |"
        for row in measured.values()
    ]
    return "\n".join(lines)


def main(folder: Path) -> int:
    """0 if jobs wait at most the goal's part of FIFO's wait, in no four weeks longer than with first fit, and
    forecasts beat the median wait.
    """
    try:
        jobs = load(folder)
    except DataAbsent as absent:
        print(absent)
        return 2
    measured = measure(jobs)
    print(table(measured), flush=True)
    print(
        "| first day | jobs | nodes | FIFO | first fit | EASY | ours | × first fit |\n"
        + f"|{'---|' * 8}"
    )
    sliced = []
    for each in slices(jobs):
        sliced.append(each)
        print(each.line(), flush=True)
    errors = forecast(jobs)
    print(
        f"forecast off by {errors.forecast:,.0f} s on average over {errors.claims:,} claims, "
        f"the queue's median wait by {errors.median_wait:,.0f} s"
    )
    results = {
        "waits": [asdict(row) for row in measured.values()],
        "slices": [asdict(each) | {"ratio": each.ratio} for each in sliced],
        "forecast": asdict(errors),
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2))
    shorter = measured[OURS].mean <= GOAL * measured[FIFO].mean
    shorter &= all(each.ratio <= 1 for each in sliced)
    return int(not (shorter and errors.forecast < errors.median_wait))
