"""Kueue's three loads, end to end through queues, claims, the ledger and PostgreSQL.

``python -m tests.benchmarks queues-baseline``, ``queues-large`` and ``queues-topology``. Work is asked for and
runs in real time, by the clock of the wall, as theirs does; ``queues-topology-hurried`` is the last one ten times
as fast, so that the work itself bounds nothing. Owners and scheduler are a process each, beside the database's.
``--one-in N`` asks for one of so many pieces: for comparing versions by the processors' seconds of a piece, while
goals are about all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.queues.databases import product_database, ran
from tests.benchmarks.queues.loads import BASELINE, HURRIED, LARGE, TOPOLOGY, Load
from tests.benchmarks.scheduling.speed import Limit

RESULTS = Path(__file__).resolve().parents[3] / "var" / "bench"


def baseline(one_in: int) -> int:
    return _main(BASELINE, one_in=one_in)


def large(one_in: int) -> int:
    return _main(LARGE, one_in=one_in)


def topology(one_in: int) -> int:
    return _main(TOPOLOGY, one_in=one_in)


def hurried(one_in: int) -> int:
    return _main(HURRIED, one_in=one_in)


def _main(load: Load, *, one_in: int) -> int:
    """0 if the goal is met, or there is none, as for a part of a load."""
    with product_database() as environment:
        arguments = (load.name, str(one_in))
        played = json.loads(
            ran("tests.benchmarks.queues.players", *arguments, environment=environment)
        )
    print(f"{load.name}: {_format_result(played)}")
    if one_in > 1:
        return 0
    limits = _limits(load, played)
    print(f"the work itself takes {load.shortest:.1f} s")
    if limits:
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
    if load.least_rate is not None:
        return [Limit(name=load.name, value=rate, unit="admissions/s", least=load.least_rate)]
    return []


def _format_result(played: Mapping[str, Any]) -> str:
    cycles = played["cycles"]
    waiting_times = ", ".join(
        f"{name} {wait:.1f} s" for name, wait in played["waiting_times"].items()
    )
    spent = ", ".join(f"{action} {seconds:.0f} s" for action, seconds in played["spent"].items())
    return (
        f"{played['pieces']:,} pieces in {played['seconds']:.1f} s, {played['evictions']:,} evictions; "
        f"{played['held']:.1%} of the guaranteed cards held; waited on average: {waiting_times}; "
        f"{cycles['cycles']:,} cycles of {cycles['seconds'] / max(1, cycles['cycles']):.3f} s, the longest "
        f"{cycles['longest']:.2f} s; owners: {spent}; seconds of processors: owners "
        f"{_used(played['processors'])}, scheduler {_used(cycles['spent'])}, "
        f"{_milliseconds(played):.2f} ms a piece"
    )


def _used(spent: Mapping[str, float]) -> str:
    return f"{spent['ours']:.1f} and their database {spent['database']:.1f}"


def _milliseconds(played: Mapping[str, Any]) -> float:
    """Of processors, of all four, for one piece."""
    every = (*played["processors"].values(), *played["cycles"]["spent"].values())
    return 1000 * float(sum(every)) / float(played["pieces"])
