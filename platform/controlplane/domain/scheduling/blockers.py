"""Blockers: why a claim cannot be placed in the fleet, from the most permanent reason to the most temporary.

No such chip, no such node, no such level of the network, no node that is large enough; then memory and CPU next
to free cards, a network domain that holds all of it, cards with the right geometry; and last, that other claims
hold them now. The reason is found by running the same placement with one requirement fewer, so an explanation
never contradicts a decision.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.common.reasons import NONE, Reason
from controlplane.domain.common.resources import Resources, format_bytes
from controlplane.domain.common.topology import Geometry, choose_cards
from controlplane.domain.quotas.claims import GangShape, RoleShape
from controlplane.domain.scheduling.network_topology import CLUSTER
from controlplane.domain.scheduling.node_table import (
    EmptyFleetCapacity,
    JournalPosition,
    Mask,
    NodeTable,
)
from controlplane.domain.scheduling.placement import ChipPlacementRequest, PlacementFinder
from controlplane.domain.scheduling.plans import PendingReason, PendingReasonCode
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    ReplicaDemand,
)

#: What no passing of time cures.
PERMANENT_CODES = frozenset(
    {
        PendingReasonCode.NO_SUCH_CHIP,
        PendingReasonCode.NO_SUCH_NODE,
        PendingReasonCode.NO_SUCH_LEVEL,
        PendingReasonCode.NEVER_FITS,
    }
)


class BlockerFinder:
    def __init__(
        self, fleet: NodeTable, placer: PlacementFinder, capacity: EmptyFleetCapacity
    ) -> None:
        self._fleet = fleet
        self._placer = placer
        self._cards = np.array([len(row.cards) for row in fleet.rows], dtype=np.int64)
        self._chips = sorted({row.chip for row in fleet.rows if row.chip})
        self._found: dict[ChipPlacementRequest, tuple[JournalPosition, PendingReason]] = {}
        self._permanent: dict[ChipPlacementRequest, PendingReason | None] = {}
        self._capacity = capacity
        self._sizes: dict[object, tuple[int, ...]] = {}

    def explain(self, claim: ClaimSnapshot, chip: str) -> PendingReason:
        """Return why the claim found no room; computed once per equal request and state of the fleet."""
        key = self._placer.search(claim, chip)
        moment = self._fleet.moment()
        known = self._found.get(key)
        if known is None or known[0] != moment:
            known = self._found[key] = moment, self._explain_blocker(claim, chip)
        return known[1]

    def permanent_blocker(self, claim: ClaimSnapshot, chip: str) -> PendingReason | None:
        """Return why it would not fit even into an empty fleet; None if each role would fit."""
        key = self._placer.search(claim, chip)
        if key not in self._permanent:
            largest = max(claim.shape.roles, key=lambda role: role.cards)
            demand = ReplicaDemand.of(largest, claim, chip)
            matching = self._fleet.matching(demand)
            self._permanent[key] = (
                self._no_matching_node(claim, chip, largest, matching)
                or self._node_too_small(largest, chip, demand, matching)
                or self._node_resources_too_small(claim, chip)
                or self._gang_too_large(claim, chip)
            )
        return self._permanent[key]

    def _explain_blocker(self, claim: ClaimSnapshot, chip: str) -> PendingReason:
        largest = max(claim.shape.roles, key=lambda role: role.cards)
        demand = ReplicaDemand.of(largest, claim, chip)
        matching = self._fleet.matching(demand)
        permanent_blocker = self.permanent_blocker(claim, chip)
        if permanent_blocker is not None:
            return permanent_blocker
        if self._fits_without_blockers(_claim_without_node_resources(claim), chip):
            return self._insufficient_node_resources(claim, chip)
        if claim.within and self._fits_without_blockers(replace(claim, within=""), chip):
            return self._no_domain_fits_reason(claim, chip)
        return self._insufficient_free_cards(claim, chip, largest, demand, matching)

    def _no_matching_node(
        self, claim: ClaimSnapshot, chip: str, largest: RoleShape, matching: Mask
    ) -> PendingReason | None:
        if largest.cards and chip not in self._chips:
            return PendingReason.of(
                PendingReasonCode.NO_SUCH_CHIP,
                "claim.no_fit.chip_not_in_fleet",
                "needs {chip}; chips in the fleet: {chips}",
                chip=chip,
                chips=", ".join(self._chips) or NONE,
            )
        if not self._fleet.topology.knows(claim.within):
            levels = ", ".join(level.name for level in self._fleet.topology.levels)
            return PendingReason.of(
                PendingReasonCode.NO_SUCH_LEVEL,
                "claim.no_fit.unknown_topology_level",
                "needs nodes under one {level}; the levels of the network topology are {levels}",
                level=claim.within,
                levels=levels,
            )
        if matching.any():
            return None
        wanted = ", ".join(f"{name}={value}" for name, value in sorted(claim.selector.items()))
        return PendingReason.of(
            PendingReasonCode.NO_SUCH_NODE,
            "claim.no_fit.no_matching_node",
            "needs a node with {chip} and the labels {labels}; no node matches",
            chip=chip,
            labels=wanted or "–",
        )

    def _node_too_small(
        self, largest: RoleShape, chip: str, demand: ReplicaDemand, matching: Mask
    ) -> PendingReason | None:
        """No node could hold one replica, however free it is."""
        wanted, biggest = largest.cards, int(self._cards[matching].max())
        if wanted > biggest:
            return PendingReason.of(
                PendingReasonCode.NEVER_FITS,
                "claim.no_fit.node_too_small",
                "needs {cards} × {chip} on one node; the largest node has {largest}",
                cards=wanted,
                chip=chip,
                largest=biggest,
                numbers={"wanted": wanted, "largest_node": biggest},
            )
        sizes = self._allocatable_sizes(demand, matching) if wanted else ()
        if wanted and wanted not in sizes:
            given = ", ".join(map(str, sizes))
            return PendingReason.of(
                PendingReasonCode.NEVER_FITS,
                "claim.no_fit.unsupported_size",
                "needs {cards} × {chip} on one node; the nodes support {sizes}",
                cards=wanted,
                chip=chip,
                sizes=given,
                numbers={"wanted": wanted},
            )
        return None

    def _node_resources_too_small(self, claim: ClaimSnapshot, chip: str) -> PendingReason | None:
        """No node with the cards of one replica has its memory or CPU, however free it is."""
        for role in claim.shape.roles:
            rows = self._capacity.replicas_by_cards(ReplicaDemand.of(role, claim, chip)) > 0
            memory = int(self._capacity.memory[rows].max(initial=0))
            cpu = int(self._capacity.cpu[rows].max(initial=0))
            if role.limits.memory > memory:
                needs, has = format_bytes(role.limits.memory), format_bytes(memory)
                reason = Reason(
                    "claim.no_fit.node_memory_too_small",
                    "needs {needed} of memory on one node; the largest node has {largest}",
                    needed=needs,
                    largest=has,
                )
            elif role.limits.cpu > cpu:
                needs, has = f"{role.limits.cpu / 1000:g}", f"{cpu / 1000:g}"
                reason = Reason(
                    "claim.no_fit.node_cpu_too_small",
                    "needs {needed} CPU cores on one node; the largest node has {largest}",
                    needed=needs,
                    largest=has,
                )
            else:
                continue
            return PendingReason(code=PendingReasonCode.NEVER_FITS, reason=reason)
        return None

    def _gang_too_large(self, claim: ClaimSnapshot, chip: str) -> PendingReason | None:
        """The whole gang, where it may run, is larger than the fleet."""
        replicas = sum(role.fewest for role in claim.shape.roles)
        best = self._capacity.replicas(claim, chip)
        if best >= replicas:
            return None
        return PendingReason.of(
            PendingReasonCode.NEVER_FITS,
            "claim.no_fit.gang_too_large",
            "needs {shape} of {chip} under one {level}; with all cards free, the "
            "best one would fit {fitting} of {replicas} replicas",
            shape=claim.shape.describe(),
            chip=chip,
            level=claim.within or CLUSTER,
            fitting=best,
            replicas=replicas,
            numbers={"best": best, "replicas": replicas},
        )

    def _insufficient_node_resources(self, claim: ClaimSnapshot, chip: str) -> PendingReason:
        """The cards are free, but not the memory or CPU for the largest replica."""
        replicas = sum(role.replicas for role in claim.shape.roles)
        if self._fits_without_blockers(_claim_without_memory_request(claim, cpu=True), chip):
            role = max(claim.shape.roles, key=lambda role: role.limits.memory)
            free = self._most_free_resources(role, claim, chip, self._fleet.memory)
            wanted: int = role.limits.memory
            needs, has = format_bytes(wanted), format_bytes(free)
            reason = (
                Reason(
                    "claim.no_fit.replica_memory",
                    "needs {needed} of memory on one node for each replica; at most {free} "
                    "is free on a node",
                    needed=needs,
                    free=has,
                )
                if replicas > 1
                else Reason(
                    "claim.no_fit.memory",
                    "needs {needed} of memory on one node; at most {free} is free on a node",
                    needed=needs,
                    free=has,
                )
            )
            code = PendingReasonCode.NO_MEMORY
        else:
            role = max(claim.shape.roles, key=lambda role: role.limits.cpu)
            free = self._most_free_resources(role, claim, chip, self._fleet.cpu)
            wanted = role.limits.cpu
            needs, has = f"{wanted / 1000:g}", f"{free / 1000:g}"
            reason = (
                Reason(
                    "claim.no_fit.replica_cpu",
                    "needs {needed} CPU cores on one node for each replica; at most {free} "
                    "are free on a node",
                    needed=needs,
                    free=has,
                )
                if replicas > 1
                else Reason(
                    "claim.no_fit.cpu",
                    "needs {needed} CPU cores on one node; at most {free} are free on a node",
                    needed=needs,
                    free=has,
                )
            )
            code = PendingReasonCode.NO_CPU
        numbers = {"wanted": wanted, "free": free, "replicas": replicas}
        return PendingReason(code=code, reason=reason, numbers=numbers)

    def _no_domain_fits_reason(self, claim: ClaimSnapshot, chip: str) -> PendingReason:
        replicas = sum(role.fewest for role in claim.shape.roles)
        best = self._replicas_in_best_domain(claim, chip)
        return PendingReason.of(
            PendingReasonCode.NO_DOMAIN,
            "claim.no_fit.topology_domain",
            "needs {shape} of {chip} under one {level}; the best {level} fits "
            "{fitting} of {replicas} replicas",
            shape=claim.shape.describe(),
            chip=chip,
            level=claim.within,
            fitting=best,
            replicas=replicas,
            numbers={"wanted": claim.shape.fewest_cards, "best": best, "replicas": replicas},
        )

    def _insufficient_free_cards(
        self,
        claim: ClaimSnapshot,
        chip: str,
        largest: RoleShape,
        demand: ReplicaDemand,
        matching: Mask,
    ) -> PendingReason:
        eligible = self._fleet.eligible(demand)
        whole = np.where(eligible, self._fleet.free_whole_cards(), 0)
        free, best = int(whole.sum()), int(whole.max())
        if largest.cards and best >= largest.cards and not self._fleet.replica_counts(demand).any():
            return PendingReason.of(
                PendingReasonCode.NOT_TOGETHER,
                "claim.no_fit.card_groups",
                "needs {cards} × {chip} with direct links on one node; {free} are free "
                "on the best node, but not in one ring or in whole pairs",
                cards=largest.cards,
                chip=chip,
                free=best,
                numbers={"wanted": largest.cards, "best_node": best},
            )
        total = int(self._cards[matching].sum())
        return PendingReason.of(
            PendingReasonCode.NO_FREE_CARDS,
            "claim.no_fit.free_cards",
            "needs {shape} of {chip}; {free} of {total} are free, at most "
            "{free_on_node} on one node",
            shape=claim.shape.describe(),
            chip=chip,
            free=free,
            total=total,
            free_on_node=best,
            numbers={
                "wanted": claim.shape.cards,
                "free": free,
                "total": total,
                "best_node": best,
            },
        )

    # -- Numbers --

    def _fits_without_blockers(self, claim: ClaimSnapshot, chip: str) -> bool:
        mark = self._fleet.mark()
        fits = self._placer.place(claim, chip) is not None
        self._fleet.undo(mark)
        return fits

    def _most_free_resources(
        self, role: RoleShape, claim: ClaimSnapshot, chip: str, left: NDArray[np.int64]
    ) -> int:
        """The most free memory or CPU on a node that has the cards of a replica."""
        bare = ReplicaDemand.of(replace(role, limits=Resources()), claim, chip)
        rows = self._fleet.fits(bare, np.arange(len(left), dtype=np.int64))
        return max(0, int(left[rows].max())) if rows.any() else 0

    def _replicas_in_best_domain(self, claim: ClaimSnapshot, chip: str) -> int:
        """Replicas that the best domain has room for, each role by itself."""
        levels = self._fleet.topology.between(claim.within, claim.within)
        if not levels:
            return 0
        room = np.zeros(len(levels[0]), dtype=np.int64)
        for role in claim.shape.roles:
            replica_counts = np.minimum(
                self._fleet.replica_counts(ReplicaDemand.of(role, claim, chip)), role.fewest
            )
            room += np.minimum(levels[0].totals(replica_counts), role.fewest)
        return int(room.max(initial=0))

    def _allocatable_sizes(self, demand: ReplicaDemand, matching: Mask) -> tuple[int, ...]:
        """Numbers of cards that some node allocates when it is empty."""
        key = demand[1:]
        if key not in self._sizes:
            kinds: dict[tuple[tuple[int, ...], Geometry], None] = {}
            for number in np.flatnonzero(matching):
                row = self._fleet.rows[number]
                geometry = row.node.geometries.get(row.chip, Geometry())
                kinds[tuple(card.index for card in row.cards), geometry] = None
            self._sizes[key] = tuple(
                sorted(
                    {
                        count
                        for indices, geometry in kinds
                        for count in range(1, len(indices) + 1)
                        if choose_cards(indices, count, geometry)
                    }
                )
            )
        return self._sizes[key]


def _claim_without_node_resources(claim: ClaimSnapshot) -> ClaimSnapshot:
    return _claim_without_memory_request(claim, cpu=False)


def _claim_without_memory_request(claim: ClaimSnapshot, *, cpu: bool) -> ClaimSnapshot:
    """The claim without its memory request, and with CPU only where that is requested."""
    roles = tuple(
        replace(role, limits=Resources(cpu=role.limits.cpu) if cpu else Resources())
        for role in claim.shape.roles
    )
    return replace(claim, shape=GangShape(roles=roles))
