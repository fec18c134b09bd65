"""What one replica asks of one node, as a value that equal replicas share."""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest
from typing import NamedTuple

from controlplane.domain.claims import WHOLE_CARD, GangShape, RoleShape
from controlplane.domain.scheduling.lines import by_kind
from controlplane.domain.scheduling.snapshots import ClaimView, Snapshot

#: Shapes that the fragmentation of a node is measured against: so much of all that is asked for.
POPULAR = 0.95
MOST_TYPICAL = 64


class Shape(NamedTuple):
    """Cards, CPU and memory of one replica."""

    cards: int
    #: Thousandths of its card, where it shares a single one; otherwise 1000.
    share: int
    #: Thousandths of a core; 0 asks for none.
    cpu: int
    #: Bytes; 0 asks for none.
    memory: int

    @classmethod
    def of(cls, role: RoleShape) -> Shape:
        return cls(role.cards, role.share, role.limits.cpu, role.limits.memory)

    @property
    def amount(self) -> int:
        """Thousandths of cards, over all of its cards."""
        return self.cards * self.share

    @property
    def shares(self) -> bool:
        return self.cards == 1 and self.share < WHOLE_CARD


class Demand(NamedTuple):
    """A shape, and the nodes that it may stand on."""

    shape: Shape
    chip: str
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: frozenset[str] = frozenset()

    @classmethod
    def of(cls, role: RoleShape, claim: ClaimView, chip: str) -> Demand:
        # A replica without cards may stand beside any chip.
        return cls(
            Shape.of(role),
            chip if role.cards else "",
            tuple(sorted(claim.selector.items())),
            claim.tolerations,
        )


class Typical(NamedTuple):
    """A shape that is often asked for."""

    shape: Shape
    chips: frozenset[str]
    #: How often, beside the others.
    weight: int


def typical_of(snapshot: Snapshot) -> tuple[Typical, ...]:
    """What claims, waiting and running, most often ask of a node; the most frequent first."""
    gangs: dict[int, GangShape] = {}
    # Claims that are read from a database share their shapes: to count those is quick.
    alike: Counter[tuple[int, tuple[str, ...]]] = Counter()
    for kind, claims in by_kind(snapshot.claims).items():
        gangs[id(kind.shape)] = kind.shape
        alike[id(kind.shape), kind.chips] += len(claims)
    for running in snapshot.running:
        gangs[id(running.shape)] = running.shape
        alike[id(running.shape), running.chips or (running.chip,)] += 1
    counted: Counter[tuple[Shape, frozenset[str]]] = Counter()
    for (gang, chips), count in alike.items():
        for asked, replicas in _asked(gangs[gang], frozenset(chips)).items():
            counted[asked] += replicas * count
    return popular(counted)


def popular(counted: Counter[tuple[Shape, frozenset[str]]]) -> tuple[Typical, ...]:
    """The most frequent of them, up to ``POPULAR`` of all."""
    names = {chips: sorted(chips) for chips in {chips for _, chips in counted}}
    ranked = nsmallest(
        MOST_TYPICAL, counted.items(), key=lambda each: (-each[1], each[0][0], names[each[0][1]])
    )
    total, seen = counted.total(), 0
    kept: list[Typical] = []
    for (shape, chips), count in ranked:
        if seen >= POPULAR * total:
            break
        kept.append(Typical(shape, chips, count))
        seen += count
    return tuple(kept)


def _asked(gang: GangShape, chips: frozenset[str]) -> dict[tuple[Shape, frozenset[str]], int]:
    return {(Shape.of(role), chips): role.replicas for role in gang.roles if role.cards}
