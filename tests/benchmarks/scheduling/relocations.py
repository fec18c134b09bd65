"""Defragmentation off and on: what few moves bring in a fleet where work has ended here and there.

``python -m tests.benchmarks scheduling-moves``. A company fills its fleet by the real cycle, then four of ten
claims end at random and nothing new comes. "Off" is the fleet as it stands; "on" is after the moves that free
whole nodes, at most two of a hundred running claims. A node is whole if nothing runs on it.
"""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.defragmentation import (
    DefragmentationLimits,
    EmptyNodesGoal,
    plan_defragmentation,
)
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot
from tests.benchmarks.scheduling.companies import NOW, UNBOUNDED, Company, saved

RESULTS = Path(__file__).resolve().parents[3] / "var" / "bench" / "scheduling-moves.json"
NODES = 512
SEEDS = (42, 43, 44, 45, 46)
#: Of the running claims, how many have ended, and how many may be moved.
ENDED = 0.4
MOVED = 0.02
#: Room to count in: more whole nodes than there are.
ALL = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One fleet."""

    seed: int
    running: int
    moves: int
    whole_off: int
    whole_on: int
    #: Card-seconds that are done again or spent restarting.
    cost: float
    seconds: float


def thinned(company: Company, *, seed: int) -> SchedulingSnapshot:
    """A fleet that was full, after some of its claims have ended."""
    world = SnapshotSimulator(
        replace(company.empty(), claims=company.claims(company.nodes * 4, name="filling"))
    )
    for placement in plan_cycle(world.snapshot(), UNBOUNDED, NOW).placements:
        runtime = world.claim(placement.claim).runtime
        assert runtime is not None
        world.start(placement, at=NOW - runtime / 2, ends_at=NOW + runtime / 2)
    ends = np.random.default_rng(seed).random(len(world.running)) < ENDED
    for claim, ended in zip(world.running, ends, strict=True):
        if ended:
            world.end(claim.uid)
    left = world.snapshot()
    return replace(left, claims=(), running=tuple(saved(running) for running in left.running))


def measure(*, nodes: int = NODES, seed: int) -> Moved:
    """Whole nodes before and after the moves."""
    snapshot = thinned(Company(nodes=nodes), seed=seed)
    bounds = DefragmentationLimits(moves=round(MOVED * len(snapshot.running)))
    begin = time.process_time()
    found = plan_defragmentation(snapshot, EmptyNodesGoal(nodes=ALL), at=NOW, bounds=bounds)
    return Moved(
        seed=seed,
        running=len(snapshot.running),
        moves=len(found.moves),
        whole_off=found.whole_before,
        whole_on=found.whole_after,
        cost=found.cost,
        seconds=time.process_time() - begin,
    )


def main() -> int:
    """0 if moves freed nodes in every fleet."""
    print("| seed | running | moved | whole nodes off | on | card-hours lost | s |\n|" + "---|" * 7)
    fleets = []
    for seed in SEEDS:
        fleet = measure(seed=seed)
        fleets.append(fleet)
        print(
            f"| {seed} | {fleet.running} | {fleet.moves} | {fleet.whole_off} | {fleet.whole_on} "
            f"| {fleet.cost / 3600:.1f} | {fleet.seconds:.1f} |",
            flush=True,
        )
    gain = statistics.mean(fleet.whole_on / fleet.whole_off for fleet in fleets)
    print(f"whole nodes on against off: {gain:.2f} times, the mean")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps([asdict(fleet) for fleet in fleets], indent=2))
    return int(any(fleet.whole_on <= fleet.whole_off for fleet in fleets))
