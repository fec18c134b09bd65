"""Placement of a gang: all of it or nothing, in the smallest part of the network that holds it.

Levels are tried from the node outwards. Of the domains of a level that have room for every role, the one that
is left fullest is taken, so that empty ones stay whole for larger gangs; inside it each replica goes where it
adds the fewest fragments.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.scheduling.network_topology import CLUSTER, NODE, TopologyLevel
from controlplane.domain.scheduling.node_table import JournalPosition, Mask, NodeTable
from controlplane.domain.scheduling.scoring import NO_ROOM, PlacementScores
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    EquivalenceClass,
    ReplicaDemand,
    ReplicaPlacement,
    RoleDemand,
)
from controlplane.domain.scheduling.typical_requests import TypicalRequest

#: A row never counts for more; replicas without cards have room everywhere.
_MOST_REPLICAS = 4096

#: Domains of a level that are tried before the next level is.
MOST_DOMAINS = 16


@dataclass(frozen=True, slots=True, eq=False)
class ChipPlacementRequest:
    """Where a gang may be placed on one chip; one object of a placer for all claims with equal requests."""

    #: Those first that are hardest to place.
    parts: tuple[RoleDemand, ...]


class _LargestFreeCapacity(NamedTuple):
    """On one row at that moment: whole cards, and thousandths of a card."""

    moment: JournalPosition
    cards: int
    share: int


class _ReplicaSlot(NamedTuple):
    """Room that was allocated for one replica."""

    row: int
    demand: ReplicaDemand
    placement: ReplicaPlacement
    #: What the board gave the row.
    score: int


class _ChipPlacementOption(NamedTuple):
    """Room for a gang on one chip; the smallest is the best."""

    #: Replicas short of what the gang wants.
    missing: int
    #: Number of the smallest level of the network of which one domain holds it all.
    level: int
    #: Sum over the replicas.
    score: int
    #: Of the first replica: between equals the first row wins, whichever chip was tried first.
    row: int
    chip: str
    slots: tuple[_ReplicaSlot, ...]


class PlacementFinder:
    """Finds room in the node table, and allocates it."""

    def __init__(self, fleet: NodeTable, typical: Sequence[TypicalRequest] = ()) -> None:
        """:param typical: requests for measuring fragmentation; without them, the best fit alone decides."""
        self.fleet = fleet
        self._board = PlacementScores(fleet, typical)
        self._searches: dict[tuple[EquivalenceClass, str], ChipPlacementRequest] = {}
        self._equal_searches: dict[Hashable, ChipPlacementRequest] = {}
        self._failed: dict[tuple[ChipPlacementRequest, bytes | None], JournalPosition] = {}
        #: The maximum that one row had free when a search failed, by chip and number of releases before.
        self._left: dict[tuple[str, int], _LargestFreeCapacity] = {}
        #: Searches, cached results not counted.
        self.searches = 0

    def search(self, claim: ClaimSnapshot, chip: str) -> ChipPlacementRequest:
        """Return what the claim requests on that chip."""
        key = claim.equivalence_class, chip
        search = self._searches.get(key)
        if search is None:
            parts = _role_demands(claim, chip)
            request = chip, parts, claim.within, claim.near
            search = self._equal_searches.setdefault(request, ChipPlacementRequest(parts))
            self._searches[key] = search
        return search

    def place(
        self, claim: ClaimSnapshot, chip: str, *, avoid: Mask | None = None
    ) -> tuple[ReplicaPlacement, ...] | None:
        """Allocate the whole gang on cards of that chip; None, and nothing is allocated, if it does not fit.

        An elastic gang gets as many replicas as fit where its minimum does. The same gang is not searched for
        again while nothing was released.

        :param avoid: rows that are reserved for other claims.
        """
        slots = self._find_slots(claim, chip, avoid)
        return None if slots is None else tuple(slot.placement for slot in slots)

    def place_on_best(
        self, claim: ClaimSnapshot, choices: Sequence[tuple[str, Mask | None]]
    ) -> tuple[str, tuple[ReplicaPlacement, ...]] | None:
        """Allocate the gang on one of several equally good chips; None, and nothing is allocated, if it fits on
        none.

        Chosen by most replicas, then by the smallest domain, then by cost.

        :param choices: chips, each with its rows that are reserved for other claims.
        """
        if len(choices) == 1:
            ((chip, avoid),) = choices
            placed = self.place(claim, chip, avoid=avoid)
            return None if placed is None else (chip, placed)
        options = []
        for chip, avoid in choices:
            before = self.fleet.mark()
            if (slots := self._find_slots(claim, chip, avoid)) is not None:
                options.append(self._build_option(claim, chip, slots))
                self.fleet.undo(before)
        if not options:
            return None
        best = min(options)
        return best.chip, tuple(self._allocate_slot(slot) for slot in best.slots)

    def _find_slots(
        self, claim: ClaimSnapshot, chip: str, avoid: Mask | None
    ) -> tuple[_ReplicaSlot, ...] | None:
        search = self.search(claim, chip)
        parts = search.parts
        key = search, None if avoid is None else avoid.tobytes()
        failed = self._failed.get(key)
        if failed is not None and self.fleet.has_only_allocated_since(failed):
            return None
        if self._lacks_cards(parts):
            return None
        self.searches += 1
        slots = self._search_levels(parts, claim, avoid)
        if slots is None:
            moment = self._failed[key] = self.fleet.moment()
            self._left[chip, moment.frees] = _LargestFreeCapacity(
                moment, *self.fleet.largest_free_capacity(chip)
            )
        return slots

    def _build_option(
        self, claim: ClaimSnapshot, chip: str, slots: tuple[_ReplicaSlot, ...]
    ) -> _ChipPlacementOption:
        rows = [slot.row for slot in slots]
        level = 0
        if len(slots) > 1:
            levels = self.fleet.topology.between(claim.near or NODE, claim.within or CLUSTER)
            together = (len(set(each.domain[rows].tolist())) == 1 for each in levels)
            level = next((number for number, one in enumerate(together) if one), len(levels))
        return _ChipPlacementOption(
            missing=sum(role.replicas for role in claim.shape.roles) - len(slots),
            level=level,
            score=sum(slot.score for slot in slots),
            row=rows[0],
            chip=chip,
            slots=slots,
        )

    def _allocate_slot(self, slot: _ReplicaSlot) -> ReplicaPlacement:
        role, index = slot.placement.role, slot.placement.index
        return self.fleet.take(slot.row, slot.demand, role=role, index=index)

    def _lacks_cards(self, parts: Sequence[RoleDemand]) -> bool:
        """Return whether it is known that no row has the cards of one replica, whatever its other requests."""
        for part in parts:
            shape = part.demand.shape
            left = self._left.get((part.demand.chip, self.fleet.moment().frees))
            if left is not None and self.fleet.has_only_allocated_since(left.moment):
                enough = left.share >= shape.share if shape.shares else left.cards >= shape.cards
                if not enough:
                    return True
        return False

    def rows_in_fitting_domains(
        self, claim: ClaimSnapshot, chip: str, *, avoid: Mask | None = None
    ) -> Mask:
        """[rows]: those under a domain with enough for each role, and for all of them in sum.

        For equal replicas that is where they fit; for several roles they may not fit even there.
        """
        could = np.zeros(len(self.fleet.rows), dtype=np.bool_)
        widest = claim.within or CLUSTER
        for level in self.fleet.topology.between(widest, widest):
            domains, _ = self._candidate_domains(level, self.search(claim, chip).parts, avoid)
            could |= np.isin(level.domain, domains)
        return could

    def _search_levels(
        self, parts: tuple[RoleDemand, ...], claim: ClaimSnapshot, avoid: Mask | None
    ) -> tuple[_ReplicaSlot, ...] | None:
        if claim.within:
            # Also if one node holds it: a node without a leaf is no leaf of its own.
            avoid = _rows_to_exclude(self.fleet.topology.inside(claim.within), avoid)
        if len(parts) == 1 and parts[0].wanted == 1:
            # One replica has no network between its parts.
            return self._place_within(None, parts, avoid)
        # One Launch runs in one cluster, so that is the widest.
        levels = self.fleet.topology.between(claim.near or NODE, claim.within or CLUSTER)
        whole = tuple(part._replace(fewest=part.wanted) for part in parts)
        placed = self._smallest_domain(levels, whole, avoid)
        if placed is None and whole != parts:
            placed = self._place_partial_gang(levels, parts, avoid)
        return placed

    def _smallest_domain(
        self, levels: Sequence[TopologyLevel], parts: Sequence[RoleDemand], avoid: Mask | None
    ) -> tuple[_ReplicaSlot, ...] | None:
        """In the smallest domain that holds it, and among those in the fullest."""
        for level in levels:
            domains, spare = self._candidate_domains(level, parts, avoid)
            for domain in domains[np.argsort(spare, kind="stable")][:MOST_DOMAINS]:
                if placed := self._place_within(level.rows(int(domain)), parts, avoid):
                    return placed
        return None

    def _place_partial_gang(
        self, levels: Sequence[TopologyLevel], parts: Sequence[RoleDemand], avoid: Mask | None
    ) -> tuple[_ReplicaSlot, ...] | None:
        """Place an elastic gang that fits nowhere completely where most of it fits."""
        for level in reversed(levels):
            domains, spare = self._candidate_domains(level, parts, avoid)
            for domain in domains[np.argsort(-spare, kind="stable")][:MOST_DOMAINS]:
                if placed := self._place_within(level.rows(int(domain)), parts, avoid):
                    return placed
        return None

    def _candidate_domains(
        self, level: TopologyLevel, parts: Sequence[RoleDemand], avoid: Mask | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Domains that could hold all roles, and the cards that each has room for, role by role."""
        enough = np.ones(len(level), dtype=np.bool_)
        spare = np.zeros(len(level), dtype=np.int64)
        some = np.zeros(len(self.fleet.rows), dtype=np.bool_)
        for part in parts:
            replica_counts = np.minimum(self.fleet.replica_counts(part.demand), _MOST_REPLICAS)
            if avoid is not None:
                replica_counts = np.where(avoid, 0, replica_counts)
            room = level.totals(replica_counts)
            enough &= room >= part.fewest
            spare += room * part.demand.shape.cards
            some |= replica_counts > 0
        if len(parts) > 1:
            enough &= self._domains_fit_all_roles(level, parts, some)
        domains = np.flatnonzero(enough)
        return domains, spare[domains]

    def _domains_fit_all_roles(
        self, level: TopologyLevel, parts: Sequence[RoleDemand], some: Mask
    ) -> Mask:
        """[domains]: whether what all roles need together is free there, on rows with room for some of them."""
        left = self.fleet.states.lefts[self.fleet.state].sum(axis=1, dtype=np.int64)
        enough = np.ones(len(level), dtype=np.bool_)
        for need, free in (
            (sum(part.fewest * part.demand.shape.amount for part in parts), left),
            (sum(part.fewest * part.demand.shape.cpu for part in parts), self.fleet.cpu),
            (sum(part.fewest * part.demand.shape.memory for part in parts), self.fleet.memory),
        ):
            enough &= level.totals(np.where(some, np.clip(free, 0, need), 0)) >= need
        return enough

    def _place_within(
        self, inside: Mask | None, parts: Sequence[RoleDemand], avoid: Mask | None
    ) -> tuple[_ReplicaSlot, ...] | None:
        """Replica by replica where each adds the fewest fragments; nothing if a role does not get its fewest.

        No role grows before all have started.
        """
        mark = self.fleet.mark()
        placed: list[_ReplicaSlot] = []
        excluded = _rows_to_exclude(inside, avoid)
        for part in parts:
            for index in range(part.fewest):
                slot = self._find_slot(part, index, excluded)
                if slot is None:
                    self.fleet.undo(mark)
                    return None
                placed.append(slot)
        for part in parts:
            for index in range(part.fewest, part.wanted):
                slot = self._find_slot(part, index, excluded)
                if slot is None:
                    break
                placed.append(slot)
        return tuple(placed)

    def _find_slot(
        self, part: RoleDemand, index: int, excluded: Mask | None
    ) -> _ReplicaSlot | None:
        """Allocate room for one replica where it scores best; None if there is none."""
        scores = self._board.scores(part.demand)
        if excluded is not None:
            scores = np.where(excluded, NO_ROOM, scores)
        if not len(scores):
            return None
        row = int(scores.argmin())
        score = int(scores[row])
        if score == NO_ROOM:
            return None
        placement = self.fleet.take(row, part.demand, role=part.role, index=index)
        return _ReplicaSlot(row, part.demand, placement, score)


def _rows_to_exclude(inside: Mask | None, avoid: Mask | None) -> NDArray[np.bool_] | None:
    if inside is None:
        return avoid
    return ~inside if avoid is None else ~inside | avoid


def _role_demands(claim: ClaimSnapshot, chip: str) -> tuple[RoleDemand, ...]:
    parts = [
        RoleDemand(role.name, ReplicaDemand.of(role, claim, chip), role.replicas, role.fewest)
        for role in claim.shape.roles
    ]
    return tuple(
        sorted(parts, key=lambda part: (-part.demand.shape.cards, -part.demand.shape.share))
    )
