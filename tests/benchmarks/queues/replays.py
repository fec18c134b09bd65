"""Kueue's three loads, end to end through queues, claims, the ledger and PostgreSQL.

``python -m tests.benchmarks queues-baseline``, ``queues-large`` and ``queues-topology``. Work is asked for and
runs in real time, by the clock of the wall, as theirs does. Owners and scheduler are a process each, beside the
database's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.queues.databases import product_database, ran
from tests.benchmarks.queues.loads import BASELINE, LARGE, TOPOLOGY, Load
from tests.benchmarks.scheduling.speed import Limit

RESULTS = Path(__file__).resolve().parents[3] / "var" / "bench"


def baseline() -> int:
    return _main(BASELINE)


def large() -> int:
    return _main(LARGE)


def topology() -> int:
    return _main(TOPOLOGY)


def _main(load: Load) -> int:
    """0 if the goal is met."""
    with product_database() as environment:
        played = json.loads(
            ran("tests.benchmarks.queues.players", load.name, environment=environment)
        )
    limits = _limits(load, played)
    print(f"{load.name}: {_in_words(played)}")
    print("| what | measured | goal |\n|---|---|---|")
    for limit in limits:
        print(limit.line())
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"queues-{load.name}.json").write_text(json.dumps(played, indent=2))
    return int(not all(limit.met for limit in limits))


def _limits(load: Load, played: Mapping[str, Any]) -> list[Limit]:
    seconds, rate = played["seconds"], played["pieces"] / played["seconds"]
    if load.most_seconds is not None:
        return [Limit(name=load.name, value=seconds, unit="s", most=load.most_seconds)]
    return [Limit(name=load.name, value=rate, unit="admissions/s", least=load.least_rate)]


def _in_words(played: Mapping[str, Any]) -> str:
    cycles = played["cycles"]
    waits = ", ".join(f"{name} {wait:.1f} s" for name, wait in played["waits"].items())
    spent = ", ".join(f"{act} {seconds:.0f} s" for act, seconds in played["spent"].items())
    return (
        f"{played['pieces']:,} pieces in {played['seconds']:.1f} s, {played['evictions']:,} evictions; "
        f"{played['held']:.1%} of the guaranteed cards held; waited on average: {waits}; "
        f"{cycles['cycles']:,} cycles of {cycles['seconds'] / max(1, cycles['cycles']):.3f} s, the longest "
        f"{cycles['longest']:.2f} s; owners: {spent}; seconds of processors: owners "
        f"{_used(played['processors'])}, scheduler {_used(cycles['spent'])}"
    )


def _used(spent: Mapping[str, float]) -> str:
    return f"{spent['ours']:.0f} and their database {spent['database']:.0f}"
