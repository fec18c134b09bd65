"""What a replica requests of a node, and a claim of the fleet, as values that equal requests share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from heapq import nsmallest
from typing import NamedTuple
from weakref import WeakValueDictionary

from controlplane.domain.quotas.claims import WHOLE_CARD, GangShape, RoleShape
from controlplane.domain.scheduling.pending_queues import claims_by_class
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, SchedulingSnapshot

#: Shapes that the fragmentation of a node is measured against: this part of all requests.
POPULAR = 0.95
MOST_TYPICAL = 64


class ReplicaShape(NamedTuple):
    """Cards, CPU and memory of one replica."""

    cards: int
    #: Thousandths of its card, where it shares a single one; otherwise 1000.
    share: int
    #: Thousandths of a core; 0 asks for none.
    cpu: int
    #: Bytes; 0 asks for none.
    memory: int

    @classmethod
    def of(cls, role: RoleShape) -> ReplicaShape:
        return cls(role.cards, role.share, role.limits.cpu, role.limits.memory)

    @property
    def amount(self) -> int:
        """Thousandths of cards, over all of its cards."""
        return self.cards * self.share

    @property
    def shares(self) -> bool:
        return self.cards == 1 and self.share < WHOLE_CARD


class ReplicaDemand(NamedTuple):
    """A replica shape with the nodes that it may run on."""

    shape: ReplicaShape
    chip: str
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: frozenset[str] = frozenset()

    @classmethod
    def of(cls, role: RoleShape, claim: ClaimSnapshot, chip: str) -> ReplicaDemand:
        # A replica without cards may stand beside any chip.
        return cls(
            ReplicaShape.of(role),
            chip if role.cards else "",
            tuple(sorted(claim.selector.items())),
            claim.tolerations,
        )


class TypicalRequest(NamedTuple):
    """A frequent request."""

    shape: ReplicaShape
    chips: frozenset[str]
    #: How often, beside the others.
    weight: int


def typical_requests(snapshot: SchedulingSnapshot) -> tuple[TypicalRequest, ...]:
    """Return what pending and running claims most often request of a node; the most frequent first."""
    gangs: dict[int, GangShape] = {}
    # Claims that are read from a database share their shapes: to count those is quick.
    alike: Counter[tuple[int, tuple[str, ...]]] = Counter()
    for equivalence_class, claims in claims_by_class(snapshot.claims).items():
        gangs[id(equivalence_class.shape)] = equivalence_class.shape
        alike[id(equivalence_class.shape), equivalence_class.chips] += len(claims)
    for running in snapshot.running:
        gangs[id(running.shape)] = running.shape
        alike[id(running.shape), running.chips or (running.chip,)] += 1
    counted: Counter[tuple[ReplicaShape, frozenset[str]]] = Counter()
    for (gang, chips), count in alike.items():
        for asked, replicas in _asked(gangs[gang], frozenset(chips)).items():
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
    kept: list[TypicalRequest] = []
    for (shape, chips), count in ranked:
        if seen >= POPULAR * total:
            break
        kept.append(TypicalRequest(shape, chips, count))
        seen += count
    return tuple(kept)


def _asked(
    gang: GangShape, chips: frozenset[str]
) -> dict[tuple[ReplicaShape, frozenset[str]], int]:
    return {(ReplicaShape.of(role), chips): role.replicas for role in gang.roles if role.cards}


class RoleDemand(NamedTuple):
    """A role of a gang, as placement sees it."""

    role: str
    demand: ReplicaDemand
    wanted: int
    fewest: int


class PlacementSearch:
    """Where a gang may be placed on one chip. Claims with equal requests share one: ``search is other``."""

    __slots__ = ("__weakref__", "chip", "near", "parts", "within")

    def __init__(
        self, chip: str, parts: tuple[RoleDemand, ...], *, within: str = "", near: str = ""
    ) -> None:
        self.chip = chip
        #: Those first that are hardest to place.
        self.parts = parts
        self.within = within
        self.near = near


#: Searches of all classes that are still referenced.
_SEARCHES: WeakValueDictionary[Hashable, PlacementSearch] = WeakValueDictionary()


def placement_search(claim: ClaimSnapshot, chip: str) -> PlacementSearch:
    """Return what the claim requests on that chip; found once, and kept as long as a claim uses it."""
    known = claim.equivalence_class.searches
    search = known.get(chip)
    if search is None:
        parts = _parts(claim, chip)
        asked = chip, parts, claim.within, claim.near
        search = _SEARCHES.get(asked)
        if search is None:
            search = PlacementSearch(chip, parts, within=claim.within, near=claim.near)
            search = _SEARCHES.setdefault(asked, search)
        known[chip] = search
    return search


def _parts(claim: ClaimSnapshot, chip: str) -> tuple[RoleDemand, ...]:
    parts = [
        RoleDemand(role.name, ReplicaDemand.of(role, claim, chip), role.replicas, role.fewest)
        for role in claim.shape.roles
    ]
    return tuple(
        sorted(parts, key=lambda part: (-part.demand.shape.cards, -part.demand.shape.share))
    )
