"""How long jobs wait: the Philly trace through the real cycle, beside FIFO and an oracle, in one run.

``python -m tests.benchmarks scheduling-waits --data FOLDER``. The fleet is such that the busiest month asks for
nine tenths of it. FIFO and the oracle see every arrival and end at once; ours decides once in two minutes, and is
held to queues that are guaranteed the same and capped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tests.benchmarks.scheduling.foretelling import Errors, Foretelling
from tests.benchmarks.scheduling.philly import (
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
BETWEEN_ROUNDS = 120.0
#: Of the mean wait with FIFO.
GOAL = 0.4
#: The busiest three weeks, in days since the first arrival, and seconds between questions.
FORETOLD = (20.0, 40.0)
BETWEEN_QUESTIONS = DAY

FIFO, ORACLE, OURS = "FIFO", "SRTF with an oracle", "ours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Of all jobs under one policy, in seconds."""

    policy: str
    mean: float
    median: float
    p90: float
    p99: float
    #: That it took to find out.
    took: float


def ours(jobs: Sequence[Job], *, nodes: int = NODES) -> Seconds:
    return Replay(jobs, nodes=nodes, every=BETWEEN_ROUNDS).run()


POLICIES: Mapping[str, Callable[[Sequence[Job]], Seconds]] = {
    FIFO: lambda jobs: in_line(jobs, nodes=NODES, passing=False),
    "first that fits": lambda jobs: in_line(jobs, nodes=NODES, passing=True),
    ORACLE: lambda jobs: least_left_first(jobs, nodes=NODES),
    OURS: ours,
}


def measure(jobs: Sequence[Job]) -> dict[str, Waits]:
    """Every policy on the same jobs."""
    measured: dict[str, Waits] = {}
    for policy, wait in POLICIES.items():
        begin = time.perf_counter()
        waits = wait(jobs)
        median, p90, p99 = np.quantile(waits, (0.5, 0.9, 0.99)).tolist()
        measured[policy] = Waits(
            policy=policy,
            mean=float(waits.mean()),
            median=median,
            p90=p90,
            p99=p99,
            took=time.perf_counter() - begin,
        )
    return measured


def foretell(jobs: Sequence[Job]) -> Errors:
    """Errors of forecasts in a busy time that starts with an empty cluster."""
    first, last = FORETOLD
    busy = between(jobs, first * DAY, last * DAY)
    watch = Foretelling(busy, every=BETWEEN_QUESTIONS)
    waits = Replay(busy, nodes=NODES, every=BETWEEN_ROUNDS, watch=watch).run()
    return watch.errors(waits)


def table(measured: Mapping[str, Waits]) -> str:
    lines = ["| policy | mean wait | median | p90 | p99 | × FIFO | × oracle |", f"|{'---|' * 7}"]
    lines += [
        f"| {row.policy} | {row.mean:,.0f} s | {row.median:,.0f} s | {row.p90:,.0f} s "
        f"| {row.p99:,.0f} s | {row.mean / measured[FIFO].mean:.3f} "
        f"| {row.mean / measured[ORACLE].mean:.1f} |"
        for row in measured.values()
    ]
    return "\n".join(lines)


def main(folder: Path) -> int:
    """0 if jobs wait at most the goal's part of FIFO's wait, and forecasts beat the median wait."""
    try:
        jobs = load(folder)
    except DataAbsent as absent:
        print(absent)
        return 2
    measured = measure(jobs)
    print(table(measured), flush=True)
    errors = foretell(jobs)
    print(
        f"forecast off by {errors.forecast:,.0f} s on average over {errors.claims:,} claims, "
        f"the queue's median wait by {errors.median_wait:,.0f} s"
    )
    figures = {"waits": [asdict(row) for row in measured.values()], "forecast": asdict(errors)}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2))
    shorter = measured[OURS].mean <= GOAL * measured[FIFO].mean
    return int(not (shorter and errors.forecast < errors.median_wait))
