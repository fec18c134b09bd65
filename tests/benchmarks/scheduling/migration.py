"""Migration off and on, on a public trace: what few moves bring where a pod would be refused.

``python -m tests.benchmarks scheduling-migration --data FOLDER``. The experiment of ``scheduling-quality``. "On",
a pod of cards that finds no room gets it by the moves that the product would propose, if they are few
(``LEAST_GAIN``); all moves together are at most two of a hundred pods that were placed. Every move is entered in
the ledger in its order, so none goes where somebody still is.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from controlplane.domain.scheduling.defragmentation import CapacityPlanner, DefragmentationLimits
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.relocation import Relocator
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, ReplicaPlacement, RunningClaim
from tests.benchmarks.scheduling import ninefold, references
from tests.benchmarks.scheduling.invariants import Ledger
from tests.benchmarks.scheduling.references import allocation
from tests.benchmarks.scheduling.traces import (
    SEEDS,
    DataAbsent,
    Numbers,
    PodShape,
    Trace,
    load,
)

RESULTS = Path(__file__).resolve().parents[3] / "var" / "bench" / "scheduling-migration.json"
TRACE = "default"
#: Percent, with migration on.
GOAL = 96.0
#: What is not allocated, against the gradient policy.
UNALLOCATED = 0.85
#: Of the pods that were placed, how many may be moved.
MOVED = 0.02
#: Thousandths of cards that a move has to bring.
LEAST_GAIN = 100
#: Moves for one pod.
MOST_MOVES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """One seed; allocation in percent."""

    seed: int
    gradient: float
    off: float
    on: float
    placed: int
    moves: int
    seconds: float

    @property
    def unallocated(self) -> float:
        """With migration on, against the gradient policy."""
        return (100 - self.on) / (100 - self.gradient)


@dataclass(slots=True)
class Migration:
    """A cluster in which pods may be moved."""

    placer: PlacementFinder
    ledger: Ledger
    #: Pods that run, by uid, with their shapes.
    running: dict[str, tuple[RunningClaim, PodShape]] = field(default_factory=dict)
    moves: int = 0
    _mover: Relocator | None = None
    #: Shapes for which there was no room, and how many moves had been made then.
    _failed: dict[PodShape, int] = field(default_factory=dict)

    def place(self, shape: PodShape, claim: ClaimSnapshot) -> bool:
        """Whether the pod got room, by itself or by moves."""
        seats = self.placer.place(claim, ninefold.ANY_CHIP) or self._room(shape, claim)
        if not seats:
            return False
        self.ledger.enter(shape, seats)
        self.running[claim.uid] = _running(claim, seats), shape
        return True

    def _room(self, shape: PodShape, claim: ClaimSnapshot) -> tuple[ReplicaPlacement, ...] | None:
        left = math.floor(MOVED * len(self.running)) - self.moves
        most = min(left, MOST_MOVES, shape.demand // LEAST_GAIN)
        if most < 1 or self._failed.get(shape) == self.moves:
            return None
        if self._mover is None:
            pods = [running for running, _ in self.running.values()]
            self._mover = Relocator(
                self.placer, pods, at=ninefold.START, restart=DefragmentationLimits().restart
            )
        planner = CapacityPlanner(self._mover, moves=most, tries=DefragmentationLimits().tries)
        seats = planner.make(claim, ninefold.ANY_CHIP, worth=math.inf)
        if seats is None:
            self._failed[shape] = self.moves
        else:
            self._moved(self._mover)
        return seats

    def _moved(self, mover: Relocator) -> None:
        for move in mover.moves:
            pod, shape = self.running[move.claim]
            self.ledger.leave(shape, move.source)
            self.ledger.enter(shape, move.target)
            self.running[move.claim] = replace(pod, replicas=move.target), shape
        self.moves += len(mover.moves)
        self._mover = None


def _running(claim: ClaimSnapshot, seats: tuple[ReplicaPlacement, ...]) -> RunningClaim:
    return RunningClaim(
        uid=claim.uid,
        queue=claim.queue,
        shape=claim.shape,
        chip=ninefold.ANY_CHIP,
        priority=claim.priority,
        admitted_at=ninefold.START - timedelta(hours=1),
        checkpointed_at=ninefold.START,
        replicas=seats,
        selector=claim.selector,
    )


def run(trace: Trace, seed: int) -> tuple[Numbers, Numbers, Migration]:
    """As ``ours.run``, with moves; and the cluster at the end."""
    _fleet, placer = ninefold.fleet(trace, seed)
    cluster = Migration(placer, Ledger.of(trace.nodes))
    models = sorted({each.model for each in trace.nodes})
    claims = [
        ninefold.labelled(shape, ninefold.claim(shape, "pod", models)) for shape in trace.shapes
    ]
    arrivals = trace.arrivals(seed)
    placed = np.zeros(len(arrivals), dtype=np.int64)
    for arrival, place in enumerate(arrivals):
        shape = trace.shapes[place]
        if cluster.place(shape, replace(claims[place], uid=f"pod-{arrival}")):
            placed[arrival] = shape.demand
    demand = np.array([shape.demand for shape in trace.shapes])
    return np.cumsum(demand[arrivals]), np.cumsum(placed), cluster


def measure(trace: Trace, seed: int) -> Migrated:
    """The gradient policy, ours, and ours with moves."""
    gradient = allocation(*references.run("FGD", trace, seed), cards=trace.cards)
    off = allocation(*ninefold.run(trace, seed), cards=trace.cards)
    begin = time.process_time()
    asked, used, cluster = run(trace, seed)
    return Migrated(
        seed=seed,
        gradient=gradient,
        off=off,
        on=allocation(asked, used, cards=trace.cards),
        placed=len(cluster.running),
        moves=cluster.moves,
        seconds=time.process_time() - begin,
    )


def main(folder: Path) -> int:
    """0 if the goal is met with migration on."""
    try:
        trace = load(folder, TRACE)
    except DataAbsent as absent:
        print(absent)
        return 2
    print("| seed | FGD | off | on | pods | moved | unallocated / FGD | s |\n|" + "---|" * 8)
    runs = []
    for seed in SEEDS:
        row = measure(trace, seed)
        runs.append(row)
        print(
            f"| {seed} | {row.gradient:.2f} | {row.off:.2f} | {row.on:.2f} | {row.placed:,} "
            f"| {row.moves} ({row.moves / row.placed:.2%}) | {row.unallocated:.3f} "
            f"| {row.seconds:.0f} |",
            flush=True,
        )
    off, on = (
        statistics.mean(values) for values in zip(*((r.off, r.on) for r in runs), strict=True)
    )
    unallocated = statistics.mean(row.unallocated for row in runs)
    print(f"mean: off {off:.2f}, on {on:.2f}; unallocated {unallocated:.3f} times that of FGD")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps([asdict(row) for row in runs], indent=2))
    return int(on < GOAL or unallocated > UNALLOCATED)
