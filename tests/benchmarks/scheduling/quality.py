"""How full the cards get: ours beside published policies on public traces, in one run.

``python -m tests.benchmarks scheduling-quality --data FOLDER``. A figure is the allocation in percent of all cards
when cards had been asked for once over, the mean over ten seeds. The references have to come out as published
before ours means anything; how near is on the table.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks.scheduling import ninefold, references
from tests.benchmarks.scheduling.references import allocation
from tests.benchmarks.scheduling.traces import (
    SEEDS,
    TRACES,
    DataAbsent,
    Numbers,
    Trace,
    load,
    published,
)

RESULTS = Path(__file__).resolve().parents[3] / "var" / "bench" / "scheduling-quality.json"
OURS = "ours"
#: Percent; at or above the best published policy, less what its seeds differ by.
GOALS: Mapping[str, float] = {
    "default": 95.2,
    "cpu250": 93.0,
    "gpushare40": 93.8,
    "gpushare100": 86.5,
    "gpuspec33": 87.6,
    "multigpu50": 97.0,
}
#: Points by which a reference may differ from its published mean, or twice the error of the two means.
TOLERANCE = 0.3

Run = Callable[[Trace, int], tuple[Numbers, Numbers]]


def _reference(policy: str) -> Run:
    return lambda trace, seed: references.run(policy, trace, seed)


POLICIES: Mapping[str, Run] = {
    **{policy: _reference(policy) for policy in references.FACTORIES},
    OURS: ninefold.run,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    trace: str
    policy: str
    #: Percent, one for each seed.
    allocation: tuple[float, ...]
    #: Percent; None where nobody published it.
    published: float | None
    #: Of one run, the median.
    seconds: float

    @property
    def mean(self) -> float:
        return statistics.mean(self.allocation)

    @property
    def reproduced(self) -> bool:
        """Whether it came out as published, as far as so few seeds can tell."""
        if self.published is None:
            return True
        spread = statistics.stdev(self.allocation) if len(self.allocation) > 1 else 0.0
        # Each of the two means has the error of its own seeds.
        error: float = spread * math.sqrt(2 / len(self.allocation))
        return abs(self.mean - self.published) <= max(TOLERANCE, 2 * error)


def measure(folder: Path, *, names: Sequence[str], seeds: Sequence[int]) -> list[Measured]:
    """All policies in turn for each seed.

    :raises DataAbsent: if a file of the traces is not there.
    """
    means = published(folder)
    measured: list[Measured] = []
    for name in names:
        trace = load(folder, name)
        found: dict[str, list[float]] = {policy: [] for policy in POLICIES}
        took: dict[str, list[float]] = {policy: [] for policy in POLICIES}
        for seed in seeds:
            for policy, run in POLICIES.items():
                begin = time.perf_counter()
                asked, used = run(trace, seed)
                took[policy].append(time.perf_counter() - begin)
                found[policy].append(allocation(asked, used, cards=trace.cards))
        measured += [
            Measured(
                trace=name,
                policy=policy,
                allocation=tuple(found[policy]),
                published=means.get((name, policy)),
                seconds=statistics.median(took[policy]),
            )
            for policy in POLICIES
        ]
        print(_line(name, measured[-len(POLICIES) :]), flush=True)
    return measured


def _head() -> str:
    names = " | ".join(f"{name} (published)" for name in references.FACTORIES)
    return f"| trace | {names} | ours | goal | s a run |\n|{'---|' * (len(POLICIES) + 3)}"


def _line(trace: str, rows: Sequence[Measured]) -> str:
    cells = [
        f"{row.mean:.2f}" + ("" if row.published is None else f" ({row.published:.2f})")
        for row in rows
    ]
    mine = rows[-1]
    return f"| {trace} | {' | '.join(cells)} | ≥ {GOALS[trace]} | {mine.seconds:.1f} |"


def main(folder: Path) -> int:
    """0 if the references came out as published and ours is at every goal."""
    print(_head())
    try:
        measured = measure(folder, names=TRACES, seeds=SEEDS)
    except DataAbsent as absent:
        print(absent)
        return 2
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps([asdict(row) | {"mean": row.mean} for row in measured], indent=2))
    for row in measured:
        if not row.reproduced:
            print(f"{row.policy} on {row.trace} differs from its published mean {row.published}")
    below = [row for row in measured if row.policy == OURS and row.mean < GOALS[row.trace]]
    for row in below:
        print(f"ours on {row.trace} is below the goal of {GOALS[row.trace]}")
    return int(bool(below) or not all(row.reproduced for row in measured))
