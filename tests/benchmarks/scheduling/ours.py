"""The product's own placement on the published cluster model: the fleet and the placer that every cycle uses.

A pod is a claim of one replica. It accepts a set of models, any of them alike; a label of the nodes says which
sets a node is in, so that one search weighs all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import WHOLE_CARD, GangShape, RoleShape
from controlplane.domain.resources import Bytes, Millicpu, Resources
from controlplane.domain.scheduling.fleet import Fleet
from controlplane.domain.scheduling.placement import Placer
from controlplane.domain.scheduling.shapes import typical_of
from controlplane.domain.scheduling.snapshots import CardView, ClaimView, NodeView, Snapshot
from tests.benchmarks.scheduling.invariants import Ledger
from tests.benchmarks.scheduling.traces import NodeShape, Numbers, PodShape, Trace

MIB = 1 << 20
ANY_CHIP = ""
START = datetime(2023, 1, 1, tzinfo=UTC)


def claim(shape: PodShape, uid: str, models: Sequence[str]) -> ClaimView:
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
    return ClaimView(
        uid=uid,
        queue="all",
        shape=GangShape(roles=(role,)),
        chips=shape.models or tuple(models),
        priority=0,
        created_at=START,
        selector={_label(shape.models): "yes"} if shape.cards and shape.models else {},
    )


def node(shape: NodeShape, sets: Sequence[tuple[str, ...]]) -> NodeView:
    """:param sets: those sets of models that pods accept."""
    cards = tuple(
        CardView(uid=f"{shape.name}/{index}", index=index, chip=shape.model, state=CardState.USABLE)
        for index in range(shape.cards)
    )
    return NodeView(
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


def fleet(trace: Trace, seed: int) -> tuple[Fleet, Placer]:
    """The empty cluster, and a placer that knows what the pods of the trace typically ask for."""
    models = sorted({each.model for each in trace.nodes})
    sets = sorted({shape.models for shape in trace.shapes if shape.models})
    snapshot = Snapshot(
        nodes=tuple(node(each, sets) for each in trace.nodes_in_order(seed)),
        claims=tuple(claim(trace.shapes[place], "", models) for place in trace.pods),
        queues={},
    )
    empty = Fleet(snapshot)
    return empty, Placer(empty, typical_of(snapshot))


def run(trace: Trace, seed: int) -> tuple[Numbers, Numbers]:
    """Thousandths of cards that had been asked for, and that were in use, after each arrival.

    Every placement is entered in a ledger of its own, which refuses a card that is given twice.
    """
    ledger = Ledger.of(trace.nodes)
    _fleet, placer = fleet(trace, seed)
    models = sorted({each.model for each in trace.nodes})
    arrivals = trace.arrivals(seed)
    placed = np.zeros(len(arrivals), dtype=np.int64)
    claims = [claim(shape, "pod", models) for shape in trace.shapes]
    for arrival, place in enumerate(arrivals):
        replicas = placer.place(claims[place], ANY_CHIP)
        if replicas is not None:
            shape = trace.shapes[place]
            ledger.enter(shape, replicas)
            placed[arrival] = shape.demand
    demand = np.array([shape.demand for shape in trace.shapes])
    return np.cumsum(demand[arrivals]), np.cumsum(placed)
