"""The most frequent requests of pending and running claims, which fragmentation is measured against."""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest
from typing import NamedTuple

from controlplane.domain.quotas.claims import GangShape
from controlplane.domain.scheduling.snapshots import (
    ReplicaShape,
    SchedulingSnapshot,
    claims_by_class,
)

#: Shapes that the fragmentation of a node is measured against: this part of all requests.
POPULAR = 0.95
MOST_TYPICAL = 64


class TypicalRequest(NamedTuple):
    shape: ReplicaShape
    chips: frozenset[str]
    #: How often, beside the others.
    weight: int


def typical_requests(snapshot: SchedulingSnapshot) -> tuple[TypicalRequest, ...]:
    """Return what pending and running claims most often request of a node; the most frequent first."""
    gangs: dict[int, GangShape] = {}
    # Claims that are read from a database share their shapes: to count those is quick.
    counts: Counter[tuple[int, tuple[str, ...]]] = Counter()
    for equivalence_class, claims in claims_by_class(snapshot.claims).items():
        gangs[id(equivalence_class.shape)] = equivalence_class.shape
        counts[id(equivalence_class.shape), equivalence_class.chips] += len(claims)
    for running in snapshot.running:
        gangs[id(running.shape)] = running.shape
        counts[id(running.shape), running.chips or (running.chip,)] += 1
    counted: Counter[tuple[ReplicaShape, frozenset[str]]] = Counter()
    for (gang, chips), count in counts.items():
        for asked, replicas in _requested_shapes(gangs[gang], frozenset(chips)).items():
            counted[asked] += replicas * count
    return most_frequent(counted)


def most_frequent(
    counted: Counter[tuple[ReplicaShape, frozenset[str]]],
) -> tuple[TypicalRequest, ...]:
    """The most frequent of them, up to ``POPULAR`` of all."""
    names = {chips: sorted(chips) for chips in {chips for _, chips in counted}}
    ranked = nsmallest(
        MOST_TYPICAL, counted.items(), key=lambda each: (-each[1], each[0][0], names[each[0][1]])
    )
    total, seen = counted.total(), 0
    frequent: list[TypicalRequest] = []
    for (shape, chips), count in ranked:
        if seen >= POPULAR * total:
            break
        frequent.append(TypicalRequest(shape, chips, count))
        seen += count
    return tuple(frequent)


def _requested_shapes(
    gang: GangShape, chips: frozenset[str]
) -> dict[tuple[ReplicaShape, frozenset[str]], int]:
    return {(ReplicaShape.of(role), chips): role.replicas for role in gang.roles if role.cards}
