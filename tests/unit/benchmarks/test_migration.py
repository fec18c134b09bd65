"""The benchmark of migration, at small size: it moves few, and keeps the books."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.scheduling import migration
from tests.benchmarks.scheduling.migration import Migrated
from tests.benchmarks.scheduling.traces import NodeShape, PodShape, Trace

#: Thousandths of a card, cores, and how many there are of them.
PODS = ((230, 2, 24), (320, 4, 40), (470, 11, 48), (590, 6, 24), (650, 11, 24), (1000, 8, 64))
TRACE = Trace(
    name="shares",
    nodes=tuple(
        NodeShape(name=f"node-{number}", cpu=44_000, memory=262_144, cards=4, model="m")
        for number in range(32)
    ),
    shapes=tuple(
        PodShape(cpu=cores * 1000, memory=1024, cards=1, milli=milli, models=())
        for milli, cores, _ in PODS
    ),
    pods=np.repeat(np.arange(len(PODS)), [count for *_, count in PODS]),
)


def test_few_pods_move_and_what_is_left_is_what_was_not_placed() -> None:
    """The ledger was told of every move in its order, and refuses a card that is given twice."""
    moves = 0
    for seed in range(3):
        _, used, cluster = migration.run(TRACE, seed)
        assert cluster.moves <= migration.MOVED * len(cluster.running)
        assert sum(cluster.ledger.cards.values()) == TRACE.cards * 1000 - used[-1]
        moves += cluster.moves
    assert moves > 0


def test_what_is_not_allocated_is_held_against_the_gradient_policy() -> None:
    row = Migrated(seed=1, gradient=95.0, off=95.5, on=96.0, placed=100, moves=2, seconds=1.0)
    assert row.unallocated == 0.8
