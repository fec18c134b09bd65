"""How fast the pure core decides: one cycle over a full fleet, and placements one by one.

``python -m tests.benchmarks scheduling-speed``. No database and no commit; those are measured with the product.
Times are those of the processor, so that other work on the machine counts as little as it can.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from controlplane.domain.common.resources import Bytes
from controlplane.domain.quotas.claims import GangShape
from controlplane.domain.scheduling.cycle import (
    Decisions,
    build_cycle_accounts,
    decide_claim,
    plan_cycle,
)
from controlplane.domain.scheduling.node_table import NodeTable
from controlplane.domain.scheduling.pending_queues import ClaimOrder
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.plans import SchedulingPlan, SchedulingPolicy
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot
from controlplane.domain.scheduling.typical_requests import typical_requests
from tests.benchmarks.scheduling.companies import NOW, UNBOUNDED, Company

RESULTS = Path(__file__).resolve().parents[3] / "var" / "bench" / "scheduling-speed.json"
NODES = 1250
WAITING = 10_000
ITERATIONS = 7
NO_NODE_HAS = 1 << 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A figure, and what it may be."""

    name: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None

    @property
    def met(self) -> bool:
        return (self.most is None or self.value <= self.most) and (
            self.least is None or self.value >= self.least
        )

    def line(self) -> str:
        goal = f"≤ {self.most:g}" if self.most is not None else f"≥ {self.least:g}"
        return f"| {self.name} | {self.value:,.3g} {self.unit} | {goal} {self.unit} |"


def cycle(
    snapshot: SchedulingSnapshot, *, iterations: int = ITERATIONS
) -> tuple[float, SchedulingPlan]:
    """Seconds of one cycle, the median, and its plan. Garbage is collected between cycles, as in the product."""
    took: list[float] = []
    for _round in range(iterations):
        gc.collect()
        gc.disable()
        begin = time.process_time()
        found = plan_cycle(snapshot, SchedulingPolicy(), NOW)
        took.append(time.process_time() - begin)
        gc.enable()
    return statistics.median(took), found


def distinct(snapshot: SchedulingSnapshot, *, more: int) -> SchedulingSnapshot:
    """The same, but no two claims ask for the same memory.

    :param more: bytes that each role asks for beside what it did.
    """
    claims = (
        replace(
            claim,
            shape=GangShape(
                roles=tuple(
                    replace(
                        role,
                        limits=replace(
                            role.limits, memory=Bytes(role.limits.memory + more + place)
                        ),
                    )
                    for role in claim.shape.roles
                )
            ),
        )
        for place, claim in enumerate(snapshot.claims)
    )
    return replace(snapshot, claims=tuple(claims))


def decisions(company: Company, *, waiting: int) -> tuple[list[float], list[float]]:
    """Seconds of each decision of a cycle that fills an empty fleet: to place a claim, and to let it wait.

    Everything that the cycle does for a claim is in it: order, queues, room, what is kept, words.
    """
    claims = company.claims(waiting, name="waiting")
    accounts = build_cycle_accounts(replace(company.empty(), claims=claims), UNBOUNDED, NOW)
    growing = Decisions()
    placed: list[float] = []
    refused: list[float] = []
    begin = time.process_time()
    for claim in ClaimOrder(claims, accounts.tree):
        took = placed if decide_claim(claim, accounts, growing) else refused
        end = time.process_time()
        took.append(end - begin)
        begin = end
    return placed, refused


def rate(company: Company, *, placements: int) -> float:
    """Placements a second on an empty fleet that stays roomy."""
    claims = company.claims(placements, name="waiting")
    snapshot = SchedulingSnapshot(nodes=company.fleet(), claims=claims, queues={})
    placer = PlacementFinder(NodeTable(snapshot), typical_requests(snapshot))
    begin = time.process_time()
    placed = sum(placer.place(claim, claim.chips[0]) is not None for claim in claims)
    return placed / (time.process_time() - begin)


def measure() -> list[Limit]:
    company = Company(nodes=NODES)
    snapshot = company.nearly_full(waiting=WAITING)
    held = sum(not card.free for node in snapshot.nodes for card in node.cards)
    seconds, found = cycle(snapshot)
    print(
        f"{held:,} of {NODES * 8:,} cards held; {len(found.placements)} placements, "
        f"{len(found.revocations)} revocations, {len(found.pending):,} refusals"
    )
    seconds_distinct, _plan = cycle(distinct(snapshot, more=0))
    seconds_hopeless, hopeless = cycle(distinct(snapshot, more=NO_NODE_HAS))
    print(f"too much memory: {len(hopeless.placements)} placements")
    placed, refused = decisions(company, waiting=WAITING)
    print(f"an empty fleet takes {len(placed):,} of {WAITING:,} claims")
    small, large = (
        statistics.median(rate(Company(nodes=nodes), placements=1000) for _round in range(3))
        for nodes in (1000, 10_000)
    )
    return [
        Limit(name="one cycle, 10,000 claims waiting", value=seconds, unit="s", most=0.3),
        Limit(
            name="the same, no two ask for the same memory",
            value=seconds_distinct,
            unit="s",
            most=1,
        ),
        Limit(name="the same, more than any node has", value=seconds_hopeless, unit="s", most=1),
        Limit(
            name="placements on an empty fleet of 1,000 nodes", value=small, unit="/s", least=2000
        ),
        *(
            Limit(
                name=f"a claim is {kind}, {name}",
                value=float(np.quantile(replica_counts, part)) * 1e3,
                unit="ms",
                most=10,
            )
            for kind, replica_counts in (("placed", placed), ("refused", refused))
            for name, part in (("median", 0.5), ("99th percentile", 0.99))
        ),
        Limit(name="cost of 10,000 nodes against 1,000", value=small / large, unit="times", most=2),
    ]


def main() -> int:
    """0 if every figure is within its limit."""
    limits = measure()
    print("| what | measured | goal |\n|---|---|---|")
    for limit in limits:
        print(limit.line())
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps([asdict(limit) for limit in limits], indent=2))
    return int(not all(limit.met for limit in limits))
