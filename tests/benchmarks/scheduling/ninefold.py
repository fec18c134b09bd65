"""The product's own scheduling cycle on the published cluster model: ``plan()`` over a snapshot of it.

A pod is a claim of one replica that accepts a set of models, all of them equally good. Pods arrive in batches;
each batch is one cycle, and what the cycle does not place is not tried again. ``fleet`` is for the benchmark of
migration, which needs the placer by itself: there, a label of the nodes says which sets a node is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.domain.quotas.claims import WHOLE_CARD, GangShape, RoleShape
from controlplane.domain.quotas.queues import QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.node_table import NodeTable
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.plans import ClaimPlacement, SchedulingPolicy
from controlplane.domain.scheduling.snapshots import (
    CardSnapshot,
    ClaimSnapshot,
    NodeSnapshot,
    RunningClaim,
    SchedulingSnapshot,
)
from controlplane.domain.scheduling.typical_requests import typical_requests
from tests.benchmarks.scheduling.invariants import Ledger
from tests.benchmarks.scheduling.traces import NodeShape, Numbers, PodShape, Trace

MIB = 1 << 20
ANY_CHIP = ""
START = datetime(2023, 1, 1, tzinfo=UTC)
QUEUE = QueueSnapshot(uid="all", name="all")
#: Arrivals that one cycle decides for.
BATCH = 200


def claim(shape: PodShape, uid: str, models: Sequence[str]) -> ClaimSnapshot:
    """A pod as the scheduler sees it.

    :param models: all that there are, for a pod that accepts any.
    """
    role = RoleShape(
        name="pod",
        replicas=1,
        cards=shape.cards,
        share=shape.milli if shape.cards == 1 else WHOLE_CARD,
        limits=Resources(cpu=Millicpu(shape.cpu), memory=Bytes(shape.memory * MIB)),
    )
    return ClaimSnapshot(
        uid=uid,
        queue="all",
        shape=GangShape(roles=(role,)),
        chips=shape.models or tuple(models),
        equal_chips=len(models),
        priority=0,
        created_at=START,
    )


def labelled(shape: PodShape, view: ClaimSnapshot) -> ClaimSnapshot:
    """For a placer that weighs all chips at once: a label of the nodes stands for the models that it accepts."""
    return (
        replace(view, selector={_label(shape.models): "yes"})
        if shape.cards and shape.models
        else view
    )


def node(shape: NodeShape, sets: Sequence[tuple[str, ...]]) -> NodeSnapshot:
    """:param sets: those sets of models that pods accept."""
    cards = tuple(
        CardSnapshot(
            uid=f"{shape.name}/{index}", index=index, chip=shape.model, state=CardState.USABLE
        )
        for index in range(shape.cards)
    )
    return NodeSnapshot(
        uid=shape.name,
        name=shape.name,
        cluster="openb",
        cards=cards,
        capacity=Resources(cpu=Millicpu(shape.cpu), memory=Bytes(shape.memory * MIB)),
        owns_cpu=True,
        labels={_label(models): "yes" for models in sets if shape.model in models},
    )


def _label(models: tuple[str, ...]) -> str:
    return "|".join(models)


def fleet(trace: Trace, seed: int) -> tuple[NodeTable, PlacementFinder]:
    """The empty cluster, and a placer that knows what the pods of the trace typically ask for."""
    models = sorted({each.model for each in trace.nodes})
    sets = sorted({shape.models for shape in trace.shapes if shape.models})
    snapshot = SchedulingSnapshot(
        nodes=tuple(node(each, sets) for each in trace.nodes_in_order(seed)),
        claims=tuple(
            labelled(trace.shapes[place], claim(trace.shapes[place], "", models))
            for place in trace.pods
        ),
        queues={},
    )
    empty = NodeTable(snapshot)
    return empty, PlacementFinder(empty, typical_requests(snapshot))


def run(trace: Trace, seed: int, *, batch: int = BATCH) -> tuple[Numbers, Numbers]:
    """Thousandths of cards that had been asked for, and that were in use, after each arrival.

    Every placement is entered in a ledger of its own, which refuses a card that is given twice.
    """
    cluster = Cluster(trace, seed)
    arrivals = trace.arrivals(seed)
    placed = np.zeros(len(arrivals), dtype=np.int64)
    for first in range(0, len(arrivals), batch):
        for arrival in cluster.cycle(range(first, min(first + batch, len(arrivals))), arrivals):
            placed[arrival] = trace.shapes[arrivals[arrival]].demand
    demand = np.array([shape.demand for shape in trace.shapes])
    return np.cumsum(demand[arrivals]), np.cumsum(placed)


class Cluster:
    """What is placed, as the snapshots of the cycles have it."""

    def __init__(self, trace: Trace, seed: int) -> None:
        self._trace = trace
        self._ledger = Ledger.of(trace.nodes)
        models = sorted({each.model for each in trace.nodes})
        self._claims = [claim(shape, "pod", models) for shape in trace.shapes]
        self._nodes = {each.name: node(each, ()) for each in trace.nodes_in_order(seed)}
        self._running: list[RunningClaim] = []

    def cycle(self, arrivals: Iterable[int], shapes: Numbers) -> Iterator[int]:
        """Plan once for those arrivals; the ones that were placed."""
        waiting = tuple(
            replace(
                self._claims[shapes[arrival]],
                uid=str(arrival),
                created_at=START + timedelta(seconds=int(arrival)),
            )
            for arrival in arrivals
        )
        snapshot = SchedulingSnapshot(
            nodes=tuple(self._nodes.values()),
            claims=waiting,
            queues={QUEUE.uid: QUEUE},
            running=tuple(self._running),
        )
        views = {each.uid: each for each in waiting}
        for placement in plan_cycle(
            snapshot, SchedulingPolicy(), waiting[-1].created_at
        ).placements:
            arrival = int(placement.claim)
            shape = self._trace.shapes[shapes[arrival]]
            self._ledger.enter(shape, placement.replicas)
            self._hold(views[placement.claim], placement, shape)
            yield arrival

    def _hold(self, view: ClaimSnapshot, placement: ClaimPlacement, shape: PodShape) -> None:
        for replica in placement.replicas:
            before = self._nodes[replica.node]
            self._nodes[replica.node] = replace(
                before,
                cards=tuple(
                    _held(card, shape, view.uid) if card.uid in replica.cards else card
                    for card in before.cards
                ),
                allocated=Resources(
                    cpu=Millicpu(before.allocated.cpu + shape.cpu),
                    memory=Bytes(before.allocated.memory + shape.memory * MIB),
                ),
            )
        self._running.append(
            RunningClaim(
                uid=view.uid,
                queue=view.queue,
                shape=view.shape,
                chip=placement.chip,
                chips=view.chips,
                priority=view.priority,
                admitted_at=view.created_at,
                replicas=placement.replicas,
            )
        )


def _held(card: CardSnapshot, shape: PodShape, uid: str) -> CardSnapshot:
    if shape.cards == 1 and shape.milli < WHOLE_CARD:
        return replace(card, shared=card.shared + shape.milli)
    return replace(card, held_by=uid)
