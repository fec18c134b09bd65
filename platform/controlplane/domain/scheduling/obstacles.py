"""What keeps a claim from a place in the fleet, from the most lasting to the most passing.

No such chip, no such node, no such level of the network, no node that is large enough; then memory and CPU beside
free cards, a domain of the network that holds all of it, cards that hang together; and last, that others have them
now. It is found by asking the same placement again with one wish fewer, so an explanation never contradicts a
decision.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.claims import GangShape, RoleShape
from controlplane.domain.geometry import Geometry, choose
from controlplane.domain.resources import Resources, bytes_in_words
from controlplane.domain.scheduling.capacity import Capacity
from controlplane.domain.scheduling.fleet import Fleet, Mask, Moment
from controlplane.domain.scheduling.placement import Placer
from controlplane.domain.scheduling.plans import Reason, RefusalCode
from controlplane.domain.scheduling.searches import Search, search_of
from controlplane.domain.scheduling.shapes import Demand
from controlplane.domain.scheduling.snapshots import ClaimView
from controlplane.domain.scheduling.topology import CLUSTER

#: What no passing of time cures.
LASTING = frozenset(
    {
        RefusalCode.NO_SUCH_CHIP,
        RefusalCode.NO_SUCH_NODE,
        RefusalCode.NO_SUCH_LEVEL,
        RefusalCode.NEVER_FITS,
    }
)


class Obstacles:
    """Finds what keeps a claim from a place in a fleet."""

    def __init__(self, fleet: Fleet, placer: Placer, capacity: Capacity) -> None:
        self._fleet = fleet
        self._placer = placer
        self._cards = np.array([len(row.cards) for row in fleet.rows], dtype=np.int64)
        self._chips = sorted({row.chip for row in fleet.rows if row.chip})
        self._found: dict[Search, tuple[Moment, Reason]] = {}
        self._lasting: dict[Search, Reason | None] = {}
        self._capacity = capacity
        self._sizes: dict[object, tuple[int, ...]] = {}

    def explain(self, claim: ClaimView, chip: str) -> Reason:
        """Why the claim found no room; worked out once for all that ask the same of the same fleet."""
        key = search_of(claim, chip)
        moment = self._fleet.moment()
        known = self._found.get(key)
        if known is None or known[0] != moment:
            known = self._found[key] = moment, self._explain(claim, chip)
        return known[1]

    def lasting(self, claim: ClaimView, chip: str) -> Reason | None:
        """Why it would find no room even if nobody held anything; None if it would, as far as each role goes."""
        key = search_of(claim, chip)
        if key not in self._lasting:
            largest = max(claim.shape.roles, key=lambda role: role.cards)
            demand = Demand.of(largest, claim, chip)
            suited = self._fleet.suited(demand)
            self._lasting[key] = (
                self._no_such_thing(claim, chip, largest, suited)
                or self._never(largest, chip, demand, suited)
                or self._never_beside_it(claim, chip)
                or self._never_together(claim, chip)
            )
        return self._lasting[key]

    def _explain(self, claim: ClaimView, chip: str) -> Reason:
        largest = max(claim.shape.roles, key=lambda role: role.cards)
        demand = Demand.of(largest, claim, chip)
        suited = self._fleet.suited(demand)
        lasting = self.lasting(claim, chip)
        if lasting is not None:
            return lasting
        if self._fits(_without_limits(claim), chip):
            return self._not_beside_it(claim, chip)
        if claim.within and self._fits(replace(claim, within=""), chip):
            return self._no_domain(claim, chip)
        return self._busy(claim, chip, largest, demand, suited)

    def _no_such_thing(
        self, claim: ClaimView, chip: str, largest: RoleShape, suited: Mask
    ) -> Reason | None:
        if largest.cards and chip not in self._chips:
            return Reason(
                code=RefusalCode.NO_SUCH_CHIP,
                reason=f"needs {chip}; the fleet has only {', '.join(self._chips) or 'no cards at all'}",
            )
        if not self._fleet.topology.knows(claim.within):
            levels = ", ".join(level.name for level in self._fleet.topology.levels)
            return Reason(
                code=RefusalCode.NO_SUCH_LEVEL,
                reason=f"needs to be under one {claim.within}; the levels of the network are {levels}",
            )
        if suited.any():
            return None
        wanted = ", ".join(f"{name}={value}" for name, value in sorted(claim.selector.items()))
        return Reason(
            code=RefusalCode.NO_SUCH_NODE,
            reason=(
                f"needs a node with {chip}, the labels {wanted or '–'} and no taint that it does "
                f"not tolerate; there is none"
            ),
        )

    def _never(self, largest: RoleShape, chip: str, demand: Demand, suited: Mask) -> Reason | None:
        """No node could hold one replica, however free it is."""
        wanted, biggest = largest.cards, int(self._cards[suited].max())
        if wanted > biggest:
            return Reason(
                code=RefusalCode.NEVER_FITS,
                reason=f"needs {wanted} × {chip} on one node; the largest node has {biggest}",
                numbers={"wanted": wanted, "largest_node": biggest},
            )
        sizes = self._given_out(demand, suited) if wanted else ()
        if wanted and wanted not in sizes:
            given = ", ".join(map(str, sizes))
            return Reason(
                code=RefusalCode.NEVER_FITS,
                reason=f"needs {wanted} × {chip} on one node; the nodes give out {given}",
                numbers={"wanted": wanted},
            )
        return None

    def _never_beside_it(self, claim: ClaimView, chip: str) -> Reason | None:
        """No node with the cards of one replica has its memory or CPU, however free it is."""
        for role in claim.shape.roles:
            rows = self._capacity.beside(Demand.of(role, claim, chip)) > 0
            memory = int(self._capacity.memory[rows].max(initial=0))
            cpu = int(self._capacity.cpu[rows].max(initial=0))
            if role.limits.memory > memory:
                needs, has = bytes_in_words(role.limits.memory), bytes_in_words(memory)
                reason = f"needs {needs} of memory on one node; the largest has {has}"
            elif role.limits.cpu > cpu:
                needs, has = f"{role.limits.cpu / 1000:g}", f"{cpu / 1000:g}"
                reason = f"needs {needs} CPU cores on one node; the largest has {has}"
            else:
                continue
            return Reason(code=RefusalCode.NEVER_FITS, reason=reason)
        return None

    def _never_together(self, claim: ClaimView, chip: str) -> Reason | None:
        """The whole gang, where it may stand, is more than there is."""
        replicas = sum(role.fewest for role in claim.shape.roles)
        best = self._capacity.replicas(claim, chip)
        if best >= replicas:
            return None
        return Reason(
            code=RefusalCode.NEVER_FITS,
            reason=(
                f"needs {claim.shape.in_words()} of {chip} under one {claim.within or CLUSTER}; if nobody "
                f"held any, the best would have room for {best} of {replicas} replicas"
            ),
            numbers={"best": best, "replicas": replicas},
        )

    def _not_beside_it(self, claim: ClaimView, chip: str) -> Reason:
        """The cards are there, but not the memory or the CPU for the greediest replica."""
        replicas = sum(role.replicas for role in claim.shape.roles)
        if self._fits(_with_limits(claim, cpu=True), chip):
            role = max(claim.shape.roles, key=lambda role: role.limits.memory)
            free = self._most_beside(role, claim, chip, self._fleet.memory)
            wanted: int = role.limits.memory
            needs, has = bytes_in_words(wanted), bytes_in_words(free)
            reason = (
                f"needs {needs} of memory on one node for each replica; the most that is free is {has}"
                if replicas > 1
                else f"needs {needs} of memory on one node; the most that is free is {has}"
            )
            code = RefusalCode.NO_MEMORY
        else:
            role = max(claim.shape.roles, key=lambda role: role.limits.cpu)
            free = self._most_beside(role, claim, chip, self._fleet.cpu)
            wanted = role.limits.cpu
            needs, has = f"{wanted / 1000:g}", f"{free / 1000:g}"
            reason = (
                f"needs {needs} CPU cores on one node for each replica; the most that is free is {has}"
                if replicas > 1
                else f"needs {needs} CPU cores on one node; the most that is free is {has}"
            )
            code = RefusalCode.NO_CPU
        numbers = {"wanted": wanted, "free": free, "replicas": replicas}
        return Reason(code=code, reason=reason, numbers=numbers)

    def _no_domain(self, claim: ClaimView, chip: str) -> Reason:
        replicas = sum(role.fewest for role in claim.shape.roles)
        best = self._most_under_one(claim, chip)
        return Reason(
            code=RefusalCode.NO_DOMAIN,
            reason=(
                f"needs {claim.shape.in_words()} of {chip} under one {claim.within}; the best "
                f"{claim.within} has room for {best} of {replicas} replicas"
            ),
            numbers={"wanted": claim.shape.fewest_cards, "best": best, "replicas": replicas},
        )

    def _busy(
        self, claim: ClaimView, chip: str, largest: RoleShape, demand: Demand, suited: Mask
    ) -> Reason:
        takes = self._fleet.eligible(demand)
        whole = np.where(takes, self._fleet.whole_cards(), 0)
        free, best = int(whole.sum()), int(whole.max())
        if largest.cards and best >= largest.cards and not self._fleet.times(demand).any():
            return Reason(
                code=RefusalCode.NOT_TOGETHER,
                reason=(
                    f"needs {largest.cards} × {chip} that hang together on one node; "
                    f"{best} are free on the best node, but not in one ring or whole pairs"
                ),
                numbers={"wanted": largest.cards, "best_node": best},
            )
        total = int(self._cards[suited].sum())
        return Reason(
            code=RefusalCode.NO_FREE_CARDS,
            reason=(
                f"needs {claim.shape.in_words()} of {chip}; {free} of {total} "
                f"are free, at most {best} on one node"
            ),
            numbers={
                "wanted": claim.shape.cards,
                "free": free,
                "total": total,
                "best_node": best,
            },
        )

    # -- Figures --

    def _fits(self, claim: ClaimView, chip: str) -> bool:
        mark = self._fleet.mark()
        fits = self._placer.place(claim, chip) is not None
        self._fleet.undo(mark)
        return fits

    def _most_beside(
        self, role: RoleShape, claim: ClaimView, chip: str, left: NDArray[np.int64]
    ) -> int:
        """The most memory or CPU on a node that has the cards of a replica."""
        bare = Demand.of(replace(role, limits=Resources()), claim, chip)
        rows = self._fleet.fits(bare, np.arange(len(left), dtype=np.int64))
        return max(0, int(left[rows].max())) if rows.any() else 0

    def _most_under_one(self, claim: ClaimView, chip: str) -> int:
        """Replicas that the best domain has room for, each role by itself."""
        levels = self._fleet.topology.between(claim.within, claim.within)
        if not levels:
            return 0
        room = np.zeros(len(levels[0]), dtype=np.int64)
        for role in claim.shape.roles:
            times = np.minimum(self._fleet.times(Demand.of(role, claim, chip)), role.fewest)
            room += np.minimum(levels[0].totals(times), role.fewest)
        return int(room.max(initial=0))

    def _given_out(self, demand: Demand, suited: Mask) -> tuple[int, ...]:
        """Numbers of cards that some node gives out when all of it is free."""
        key = demand[1:]
        if key not in self._sizes:
            kinds: dict[tuple[tuple[int, ...], Geometry], None] = {}
            for number in np.flatnonzero(suited):
                row = self._fleet.rows[number]
                geometry = row.node.geometries.get(row.chip, Geometry())
                kinds[tuple(card.index for card in row.cards), geometry] = None
            self._sizes[key] = tuple(
                sorted(
                    {
                        count
                        for indices, geometry in kinds
                        for count in range(1, len(indices) + 1)
                        if choose(indices, count, geometry)
                    }
                )
            )
        return self._sizes[key]


def _without_limits(claim: ClaimView) -> ClaimView:
    return _with_limits(claim, cpu=False)


def _with_limits(claim: ClaimView, *, cpu: bool) -> ClaimView:
    """The claim as if it asked for no memory, and for CPU only where that is wanted."""
    roles = tuple(
        replace(role, limits=Resources(cpu=role.limits.cpu) if cpu else Resources())
        for role in claim.shape.roles
    )
    return replace(claim, shape=GangShape(roles=roles))
