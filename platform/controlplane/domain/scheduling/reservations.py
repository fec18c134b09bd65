"""Reservations of nodes for pending claims, so that smaller claims do not overtake them for ever.

For a blocked claim, running claims are removed in the order of their expected ends until the whole gang fits.
The nodes where it fits then are reserved for it::

    node a  ████████ ends 10:40 ▒▒▒▒▒▒▒▒▒▒▒▒▒
    node b  ░░░░░░░░░░░░░░░░░░░ ▒▒▒▒▒▒▒▒▒▒▒▒▒   ▒ the reserved gang, from 10:40 on
                  └ for claims that end by 10:40: they are backfilled

A later claim may use a reserved node only if it ends before the gang starts; otherwise it is placed elsewhere or
stays pending. So a claim with a reservation starts at the latest when the claims that were running then have
ended, however many smaller ones arrive. Workloads without a known end are assumed to end last, the oldest first.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from controlplane.domain.scheduling.node_table import EmptyFleetCapacity, Mask, NodeTable
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.plans import Reservation, nodes_of_replicas
from controlplane.domain.scheduling.runtime_estimates import LONGEST, expected_runtime_on_chip
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    EquivalenceClass,
    ReplicaPlacement,
    RunningClaim,
    shrink_claim_to_minimum,
)

#: Limit of the work for looking ahead in one plan, about a second.
MOST_WORK = 100_000
#: What one search is, where taking away a running claim is 1.
_SEARCH = 32

#: Chip, runtime on it, and right to it.
_Terms = tuple[str, timedelta | None, bool]

#: Later than every known end.
_UNKNOWN_END = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldReservation:
    reservation: Reservation
    chip: str
    #: It is reserved for a claim within a guarantee; other claims within theirs have to respect it too.
    within_guarantee: bool
    rows: Mask


class _EarliestStart(NamedTuple):
    replicas: tuple[ReplicaPlacement, ...]
    #: None if unknown.
    starts_at: datetime | None


class ReservationPlanner:
    """The reservations of one plan."""

    def __init__(
        self,
        *,
        fleet: NodeTable,
        placer: PlacementFinder,
        capacity: EmptyFleetCapacity,
        running: Sequence[RunningClaim],
        at: datetime,
        backfill: bool,
        work: int = MOST_WORK,
    ) -> None:
        """Start without reservations.

        :param backfill: claims that end in time may use reserved nodes; otherwise none may.
        :param work: limit of the work for looking ahead; removing one running claim is 1.
        """
        self._fleet = fleet
        self._placer = placer
        self._capacity = capacity
        self._at = at
        self._backfill = backfill
        self._work = work
        #: Number of its searches.
        self.searches = 0
        self._starts: dict[tuple[EquivalenceClass, str], datetime | None] = {}
        self._held: list[_HeldReservation] = []
        #: Rows to avoid, by chip, runtime on it and right.
        self._avoided: dict[_Terms, Mask | None] = {}
        #: For the same, the first claim that they are reserved for.
        self._first: dict[_Terms, str] = {}
        self._ends: dict[str, list[RunningClaim]] = {}
        for view in running:
            # What is evicted for a claim is nominated for that claim.
            if not view.revoked_for:
                self._ends.setdefault(view.chip, []).append(view)
        for ends in self._ends.values():
            ends.sort(key=self._ending_sort_key)

    @property
    def reserved(self) -> tuple[Reservation, ...]:
        return tuple(held.reservation for held in self._held)

    def started(self, view: RunningClaim) -> None:
        """Add a claim that the plan placed: it will end too."""
        insort(self._ends.setdefault(view.chip, []), view, key=self._ending_sort_key)

    def cancel(self, view: RunningClaim) -> None:
        """Remove a claim that the plan no longer places."""
        ends = self._ends.get(view.chip, [])
        if view in ends:
            ends.remove(view)

    def avoid(self, claim: ClaimSnapshot, chip: str, *, within_guarantee: bool) -> Mask | None:
        """Return the rows that the claim may not use, as it would delay the claims they are reserved for."""
        if not self._held:
            return None
        key = (chip, expected_runtime_on_chip(claim, chip), within_guarantee)
        if key not in self._avoided:
            mask = None
            for held in self._held:
                if self._applies_to_claim(held, claim, chip, within_guarantee=within_guarantee):
                    mask = held.rows if mask is None else mask | held.rows
            self._avoided[key] = mask
        return self._avoided[key]

    def blocking_claim(self, claim: ClaimSnapshot, chip: str, *, within_guarantee: bool) -> str:
        """Return the uid of the first claim whose nodes it has to avoid; empty if there is none."""
        if not self._held:
            return ""
        key = (chip, expected_runtime_on_chip(claim, chip), within_guarantee)
        if key not in self._first:
            binding = (
                held
                for held in self._held
                if self._applies_to_claim(held, claim, chip, within_guarantee=within_guarantee)
            )
            first = next(binding, None)
            self._first[key] = first.reservation.claim if first else ""
        return self._first[key]

    def reserve(self, claim: ClaimSnapshot, rights: Mapping[str, bool]) -> str | None:
        """Keep room on the chip with which the claim can end first; None if there will never be any.

        :param rights: the chips, and whether the claim is within a guarantee on each.
        """
        least, best = shrink_claim_to_minimum(claim), None
        for chip, within_guarantee in rights.items():
            found = self._earliest_start(least, chip, within_guarantee=within_guarantee)
            if found is not None:
                ends_at = _latest_end(found.starts_at, expected_runtime_on_chip(claim, chip))
                if best is None or ends_at < best[0]:
                    best = ends_at, chip, found
        if best is None:
            return None
        _, chip, found = best
        nodes = nodes_of_replicas(found.replicas)
        reservation = Reservation(claim=claim.uid, nodes=nodes, starts_at=found.starts_at)
        rows = self._fleet.mask(nodes)
        self._held.append(
            _HeldReservation(
                reservation=reservation, chip=chip, within_guarantee=rights[chip], rows=rows
            )
        )
        self._avoided.clear()
        self._first.clear()
        self._starts.clear()
        return chip

    def starts_at(
        self, claim: ClaimSnapshot, chip: str, *, within_guarantee: bool
    ) -> datetime | None:
        """When it could start on the chip, behind existing reservations; None if unknown, or never."""
        key = (claim.equivalence_class, chip)
        if key not in self._starts:
            found = self._earliest_start(
                shrink_claim_to_minimum(claim), chip, within_guarantee=within_guarantee
            )
            self._starts[key] = found.starts_at if found else None
        return self._starts[key]

    def _earliest_start(
        self, claim: ClaimSnapshot, chip: str, *, within_guarantee: bool
    ) -> _EarliestStart | None:
        """Where and when it fits if all running claims end as expected."""
        if self._work <= 0:
            return None
        avoid = self._reserved_rows(within_guarantee=within_guarantee)
        fewest = sum(role.fewest for role in claim.shape.roles)
        if self._capacity.replicas(claim, chip, avoid=avoid) < fewest:
            return None
        ends = self._ends.get(chip, [])
        before, searches = self._fleet.mark(), self._placer.searches
        try:
            last = self._earliest_fit(claim, chip, ends, avoid)
            if last is None:
                return None
            self._fleet.free(ends[last])
            replicas = self._placer.place(claim, chip, avoid=avoid)
        finally:
            self._fleet.undo(before)
            self.searches += self._placer.searches - searches
        if replicas is None:
            return None
        return _EarliestStart(replicas, self._expected_end(ends[last]))

    def _earliest_fit(
        self, claim: ClaimSnapshot, chip: str, ends: Sequence[RunningClaim], avoid: Mask | None
    ) -> int | None:
        """Remove claims by expected end until the claim fits; return the last one, or None if it never fits.

        Steps double until it fits, then halve: about twice as many are removed as necessary.
        """
        done, step, doubling = 0, 1, True
        while done < len(ends):
            mark = self._fleet.mark()
            for view in ends[done : done + step]:
                self._fleet.free(view)
            self._work -= step + _SEARCH
            fits = self._placer.place(claim, chip, avoid=avoid) is not None
            if fits:
                self._fleet.undo(mark)
                doubling = False
                if step == 1:
                    return done
            else:
                done += step
            step = step * 2 if doubling else max(1, step // 2)
        return None

    def _reserved_rows(self, *, within_guarantee: bool) -> Mask | None:
        """Return the rows reserved for claims before it: a later start ends in time for none of them."""
        mask = None
        for held in self._held:
            if held.within_guarantee or not within_guarantee:
                mask = held.rows if mask is None else mask | held.rows
        return mask

    def _applies_to_claim(
        self, held: _HeldReservation, claim: ClaimSnapshot, chip: str, *, within_guarantee: bool
    ) -> bool:
        """Return whether the claim has to avoid the reservation; within a guarantee it overtakes borrowers."""
        if within_guarantee and not held.within_guarantee:
            return False
        if not self._backfill and held.chip == chip:
            return True
        return not self._ends_in_time(claim, chip, held.reservation)

    def _ends_in_time(self, claim: ClaimSnapshot, chip: str, reservation: Reservation) -> bool:
        runtime = expected_runtime_on_chip(claim, chip)
        if runtime is None or reservation.starts_at is None:
            return False
        return runtime <= reservation.starts_at - self._at

    def _expected_end(self, view: RunningClaim) -> datetime | None:
        """Return when it is expected to end; evicted or overdue claims end at once."""
        if view.revoking:
            return self._at
        return None if view.ends_at is None else max(self._at, view.ends_at)

    def _ending_sort_key(self, view: RunningClaim) -> tuple[datetime, datetime, str]:
        return self._expected_end(view) or _UNKNOWN_END, view.admitted_at, view.uid


def _latest_end(starts_at: datetime | None, runtime: timedelta | None) -> datetime:
    """When it would end, if its runtime is known; otherwise when it starts."""
    if starts_at is None:
        return _UNKNOWN_END
    return min(starts_at, _UNKNOWN_END - LONGEST) + (runtime or timedelta(0))
