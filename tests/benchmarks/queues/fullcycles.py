"""``python -m tests.benchmarks queues-cycle``: full cycles over 10,000 cards with 10,000 claims waiting.

See ``cycles``. Seconds of the wall count, and those of processors are told beside them: on a machine that others
use too, the first say as much of the others.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.queues.databases import product_database, ran
from tests.benchmarks.scheduling.speed import Limit

RESULTS = Path(__file__).resolve().parents[3] / "var" / "bench" / "queues-cycle.json"
NODES, WAITING = 1250, 10_000
MOST_SECONDS = 0.5


def main() -> int:
    """0 if the median cycle is within its limit."""
    with product_database() as environment:
        arguments = (str(NODES), str(WAITING))
        cycles = json.loads(
            ran("tests.benchmarks.queues.cycles", *arguments, environment=environment)
        )
    print(
        "| cycle | placed | told to stop | load s | plan s | commit s | all s | processor s | database s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    print(_row("first", cycles[:1]))
    print(_row("median of the others", cycles[1:]))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(cycles, indent=2))
    seconds = statistics.median(sum(turn["seconds"].values()) for turn in cycles[1:])
    limit = Limit(name="one full cycle", value=seconds, unit="s", most=MOST_SECONDS)
    print("\n| what | measured | goal |\n|---|---|---|\n" + limit.line())
    return int(not limit.met)


def _row(name: str, cycles: Sequence[Mapping[str, Any]]) -> str:
    counts = [statistics.median(turn[what] for turn in cycles) for what in ("admitted", "revoked")]
    phases = [
        statistics.median(turn["seconds"][phase] for turn in cycles)
        for phase in ("load", "plan", "commit")
    ]
    phases.append(statistics.median(sum(turn["seconds"].values()) for turn in cycles))
    phases += [
        statistics.median(turn["spent"][what] for turn in cycles) for what in ("ours", "database")
    ]
    cells = [name, *(f"{count:.0f}" for count in counts), *(f"{each:.3f}" for each in phases)]
    return f"| {' | '.join(cells)} |"
