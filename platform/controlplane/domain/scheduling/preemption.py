"""Preemption: which running claims are evicted for a claim that is entitled to their cards, found by simulation.

There are two rights to cards that others hold:

*reclaim*: a claim within a guarantee takes back what others borrowed. Never from a queue that is within its own
guarantee, nor from one below a queue that is (``QueueTree.may_reclaim``);

*preemption*: a claim of higher priority replaces one of lower priority in its own queue, where the queue allows
it.

Claims that the same plan has placed are candidates as well: a claim that the next cycle would have to evict
does not start (``PreemptionPlan.starting``). Whether a running claim is borrowing is decided without them.

Victims are whole claims whose owners can save and stop. They are ranked once: borrowers before those within
their guarantee, then the lowest priority, the least work lost since a checkpoint, the youngest. Node by node,
where the least is lost first, they are removed from the simulated fleet until the whole gang fits; then each
that turns out not to be needed is put back, so that evicting one fewer would not do. The simulation leaves no
trace but the names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.quotas.tree import QueueTree
from controlplane.domain.scheduling.explanations import explain_preemption, explain_reclaim
from controlplane.domain.scheduling.node_table import Mask, NodeTable, RowState
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.plans import ClaimEviction, nodes_of_replicas
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    ReplicaPlacement,
    RunningClaim,
    shrink_claim_to_minimum,
)
from controlplane.domain.scheduling.victims import (
    NetworkRegion,
    Victim,
    victim_rank,
    victim_regions,
    victim_sort_key,
)

#: Parts of the network that are tried, those with the least to lose first.
MOST_REGIONS = 8


class PreemptionPlan(NamedTuple):
    """The claims to evict for a claim, and where it will run."""

    chip: str
    victims: tuple[RunningClaim, ...]
    replicas: tuple[ReplicaPlacement, ...]
    #: The rows that it uses, as they are when it runs.
    then: Mapping[int, RowState]
    #: Claims that the plan has placed and that must not start.
    starting: tuple[RunningClaim, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        return nodes_of_replicas(self.replicas)


class _PreemptionFit(NamedTuple):
    """A place that was found by trying, and the rows that changed."""

    replicas: tuple[ReplicaPlacement, ...]
    then: Mapping[int, RowState]


class _Rights(NamedTuple):
    """To the cards of others."""

    #: The queue whose guarantee covers the claim, where that may be taken back; otherwise empty.
    covered_by: str
    #: Less urgent claims of its own queue may be stopped.
    preempts: bool


class Preemptor:
    """Finds victims in one plan; a victim is not chosen twice."""

    def __init__(
        self,
        *,
        fleet: NodeTable,
        placer: PlacementFinder,
        tree: QueueTree,
        running: Sequence[RunningClaim],
        at: datetime,
    ) -> None:
        self._fleet = fleet
        self._placer = placer
        self._tree = tree
        #: By chip and queue, in the order in which they are given up.
        self._ranked: dict[str, dict[str, list[Victim]]] = {}
        #: By chip, the places of the queues among these, and the queues by the topmost one above them.
        self._places: dict[str, dict[str, int]] = {}
        self._below: dict[str, dict[str, list[str]]] = {}
        #: By chip and topmost queue: at which version which queues below it hold more than they state.
        self._lending: dict[tuple[str, str], tuple[int, list[str]]] = {}
        #: By chip and queue, those that the plan has placed.
        self._starting: dict[str, dict[str, list[Victim]]] = {}
        self._at = at
        #: Stopping already, for no claim: their cards become free without another victim.
        self._stopping: dict[str, list[RunningClaim]] = {}
        for view in sorted(running, key=partial(victim_rank, at)):
            if view.revoking:
                # Its queue would be within its guarantee without it, or more than the borrowed amount would be
                # reclaimed.
                tree.charge_evicted_cards(view.queue, view.chip, view.amount)
            if view.revoking and not view.revoked_for:
                self._stopping.setdefault(view.chip, []).append(view)
            elif view.preemptible and not view.revoking and view.amount:
                queues = self._ranked.setdefault(view.chip, {})
                queues.setdefault(view.queue, []).append(Victim.of(view, fleet, at))

    def started(self, view: RunningClaim) -> None:
        """Add a claim that the plan has placed."""
        victim = Victim.of(view, self._fleet, self._at, starting=True)
        self._starting.setdefault(view.chip, {}).setdefault(view.queue, []).append(victim)
        places = self._places.get(view.chip)
        if places is not None and view.queue not in places:
            places[view.queue] = len(places)
            below = self._below[view.chip]
            below.setdefault(self._tree.topmost_queue(view.queue), []).append(view.queue)

    def cancel(self, view: RunningClaim) -> None:
        """Remove a claim that the plan no longer places."""
        self._tree.start(view.queue, view.chip, -view.amount)
        starting = self._starting[view.chip]
        starting[view.queue] = [each for each in starting[view.queue] if each.view is not view]

    def plan_preemption(
        self, claim: ClaimSnapshot, chip: str, *, avoid: Mask | None
    ) -> PreemptionPlan | None:
        """The fewest and cheapest that have to stop for the claim; None if that would not help.

        :param avoid: rows that are reserved for other claims.
        """
        rights = self._preemption_rights(claim, chip)
        candidates = list(self._candidate_victims(claim, chip, rights))
        if not candidates:
            return None
        least = shrink_claim_to_minimum(claim)
        before = self._fleet.mark()
        try:
            for view in self._stopping.get(chip, ()):
                self._fleet.free(view)
            if self._find_fit(least, chip, (), avoid) is not None:
                return None
            for region in self._evictable_regions(least, chip, candidates, avoid):
                cleared = self._find_victims_in_region(least, chip, region, rights)
                if cleared is not None:
                    return self._minimize_victims(least, chip, *cleared, avoid=region.avoid)
        finally:
            self._fleet.undo(before)
        return None

    def awaited(self, claim: ClaimSnapshot, stopping: Sequence[RunningClaim]) -> PreemptionPlan:
        """Return what was nominated for the claim in an earlier cycle, without choosing new victims."""
        chip = stopping[0].chip
        fit = placement_after(
            self._fleet, self._placer, stopping, shrink_claim_to_minimum(claim), chip
        )
        return PreemptionPlan(chip, tuple(stopping), *(fit or _PreemptionFit((), {})))

    def stop(self, room: PreemptionPlan, claim: ClaimSnapshot) -> tuple[ClaimEviction, ...]:
        """Mark the victims as evicted for the claim; return the evictions with their reasons."""
        revocations = []
        for view in room.victims:
            self._tree.charge_evicted_cards(view.queue, view.chip, view.amount)
            ranked = self._ranked[view.chip]
            ranked[view.queue] = [each for each in ranked[view.queue] if each.view is not view]
            if view.queue == claim.queue:
                revocations.append(explain_preemption(view, claim))
            else:
                guaranteed = self._tree.guaranteed(view.queue, view.chip) // WHOLE_CARD
                revocations.append(
                    explain_reclaim(
                        view,
                        claim,
                        queue=self._tree.view(view.queue).name,
                        guaranteed=guaranteed,
                        owner=self._tree.view(claim.queue).name,
                    )
                )
        return tuple(revocations)

    # -- Who may be stopped --

    def _preemption_rights(self, claim: ClaimSnapshot, chip: str) -> _Rights:
        queue = self._tree.view(claim.queue)
        covered_by = self._tree.check(
            claim.queue, chip, claim.shape.min_card_thousandths
        ).covered_by
        return _Rights(covered_by if queue.reclaims else "", queue.preempts)

    def _candidate_victims(
        self, claim: ClaimSnapshot, chip: str, rights: _Rights
    ) -> Iterator[Victim]:
        """Whom it may have stopped now, borrowers of other queues first."""
        if not claim.shape.min_card_thousandths:
            return
        queues, starting = self._ranked.get(chip, {}), self._starting.get(chip, {})
        if rights.covered_by:
            for queue in self._borrowing_queues(chip, rights.covered_by):
                for victims in (queues.get(queue), starting.get(queue)):
                    if (
                        victims
                        and queue != claim.queue
                        and self._may_evict(rights, victims[0], chip)
                    ):
                        yield from victims
        if rights.preempts:
            yield from takewhile(
                lambda victim: victim.priority < claim.priority,
                queues.get(claim.queue, ()),
            )
            for victim in starting.get(claim.queue, ()):
                if victim.priority < claim.priority:
                    yield victim

    def _borrowing_queues(self, chip: str, covered_by: str) -> list[str]:
        """Queues from which cards may be reclaimed, in the order of their victims.

        Computed again below a topmost queue only if something changed there.
        """
        places = self._places.get(chip)
        if places is None:
            known_queues = {**self._ranked.get(chip, {}), **self._starting.get(chip, {})}
            places = {queue: place for place, queue in enumerate(known_queues)}
            self._places[chip] = places
            below = self._below[chip] = {}
            for queue in places:
                below.setdefault(self._tree.topmost_queue(queue), []).append(queue)
        # Ancestors of the claim's queue are always included: what they hold themselves is not compared.
        found = {queue for queue in self._tree.path_to_root(covered_by) if queue in places}
        for top, queues in self._below[chip].items():
            version = self._tree.version_of(top)
            known = self._lending.get((chip, top))
            if known is None or known[0] != version:
                borrowers = [queue for queue in queues if self._tree.is_borrowing(queue, chip)]
                known = self._lending[chip, top] = version, borrowers
            found.update(known[1])
        return sorted(found, key=places.__getitem__)

    def _may_evict(self, rights: _Rights, victim: Victim, chip: str) -> bool:
        return bool(rights.covered_by) and self._tree.may_reclaim(
            rights.covered_by, victim.queue, chip, starting=victim.starting
        )

    # -- By trying --

    def _evictable_regions(
        self, claim: ClaimSnapshot, chip: str, candidates: Sequence[Victim], avoid: Mask | None
    ) -> list[NetworkRegion]:
        """What is tried; where that is not all, nothing without the room even if all of them stopped."""
        found = victim_regions(self._fleet, claim, chip, candidates, avoid=avoid)
        if len(found) > MOST_REGIONS:
            before = self._fleet.mark()
            for victim in candidates:
                self._fleet.free(victim.view)
            could = self._placer.rows_in_fitting_domains(claim, chip, avoid=avoid)
            self._fleet.undo(before)
            found = [region for region in found if (could & ~region.avoid).any()]
        return found[:MOST_REGIONS]

    def _find_victims_in_region(
        self, claim: ClaimSnapshot, chip: str, region: NetworkRegion, rights: _Rights
    ) -> tuple[list[Victim], _PreemptionFit] | None:
        """Victims without which the claim fits, and where; None if it does not fit even so."""
        chosen: dict[str, Victim] = {}
        fit, next_try = None, region.lacking
        for number, bundle in enumerate(region.bundles, start=1):
            for victim in bundle.victims:
                view = victim.view
                if view.uid in chosen:
                    continue
                # With earlier victims removed, its queue may be within its guarantee.
                own = view.queue == claim.queue
                if own or self._may_evict(rights, victim, chip):
                    chosen[view.uid] = victim
                    self._tree.charge_evicted_cards(
                        view.queue, chip, view.amount, starting=victim.starting
                    )
            if number >= min(next_try, len(region.bundles)):
                fit = self._find_fit(claim, chip, list(chosen.values()), region.avoid)
                if fit is not None:
                    break
                next_try = 2 * number - region.lacking + 1
        for victim in chosen.values():
            amount = -victim.view.amount
            self._tree.charge_evicted_cards(victim.queue, chip, amount, starting=victim.starting)
        return None if fit is None else (list(chosen.values()), fit)

    def _minimize_victims(
        self,
        claim: ClaimSnapshot,
        chip: str,
        victims: list[Victim],
        fit: _PreemptionFit,
        *,
        avoid: Mask,
    ) -> PreemptionPlan:
        """The minimal subset of the victims: without any one of them the claim would not fit."""
        used = set(nodes_of_replicas(fit.replicas))
        near = [
            each for each in victims if not used.isdisjoint(nodes_of_replicas(each.view.replicas))
        ]
        if (found := self._find_fit(claim, chip, near, avoid)) is not None:
            victims, fit = near, found
        for victim in sorted(victims, key=partial(victim_sort_key, claim), reverse=True):
            without = [other for other in victims if other is not victim]
            if (found := self._find_fit(claim, chip, without, avoid)) is not None:
                victims, fit = without, found
        starting = tuple(victim.view for victim in victims if victim.starting)
        running = tuple(victim.view for victim in victims if not victim.starting)
        return PreemptionPlan(chip, running, *fit, starting)

    def _find_fit(
        self, claim: ClaimSnapshot, chip: str, victims: Sequence[Victim], avoid: Mask | None
    ) -> _PreemptionFit | None:
        """Where the claim would go without those victims; the fleet and the tree stay as they are."""
        if not self._is_within_quota(claim, chip, victims):
            return None
        stopped = [victim.view for victim in victims]
        return placement_after(self._fleet, self._placer, stopped, claim, chip, avoid=avoid)

    def _is_within_quota(self, claim: ClaimSnapshot, chip: str, victims: Sequence[Victim]) -> bool:
        """Whether its queue may have the claim once the victims hold nothing."""
        amount = claim.shape.amount
        if self._tree.check(claim.queue, chip, amount).shortage is None:
            return True
        held: Counter[str] = Counter()
        for victim in victims:
            held[victim.queue] += victim.view.amount
        for queue, freed in held.items():
            self._tree.charge(queue, chip, -freed)
        shortage = self._tree.check(claim.queue, chip, amount).shortage
        for queue, freed in held.items():
            self._tree.charge(queue, chip, freed)
        return shortage is None


def placement_after(
    fleet: NodeTable,
    placer: PlacementFinder,
    victims: Iterable[RunningClaim],
    claim: ClaimSnapshot,
    chip: str,
    *,
    avoid: Mask | None = None,
) -> _PreemptionFit | None:
    """Where the claim would go once those have ended; the fleet stays as it is."""
    before, fit = fleet.mark(), None
    for view in victims:
        fleet.free(view)
    replicas = placer.place(claim, chip, avoid=avoid)
    if replicas is not None:
        fit = _PreemptionFit(replicas, fleet.rows_changed_since(before))
    fleet.undo(before)
    return fit
