"""Cards for those that they are owed to: which running claims have to stop, found by trying.

Two rights to another's cards, and no third:

*reclaim*: a claim within a guarantee takes back what others borrowed. Never from a queue that is within its own
guarantee, nor from one below a queue that is (``QueueTree.may_take_back``);

*preemption*: an urgent claim takes the place of a less urgent one of its own queue, where the queue says so.

Claims that the same plan has placed are candidates as well: whoever the next cycle would have to evict does not
start (``Room.starting``). Whether running work is a borrower's is asked without them.

Victims are whole claims whose owners can save and stop. They are ranked once: borrowers before those within their
guarantee, then the lowest priority, the least work lost since a checkpoint, the youngest. Node by node, where the
least is lost first, they are taken away from the simulated fleet until the whole gang fits; then each that turns
out not to be needed is given back, so that stopping one fewer would not do. Nothing of it stays but names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from controlplane.domain.claims import WHOLE_CARD
from controlplane.domain.quotas import QueueTree
from controlplane.domain.scheduling.elastic import at_least
from controlplane.domain.scheduling.explain import explain_preemption, explain_reclaim
from controlplane.domain.scheduling.fleet import Fleet, Mask, Then
from controlplane.domain.scheduling.placement import Placer
from controlplane.domain.scheduling.plans import ReplicaPlacement, Revocation
from controlplane.domain.scheduling.reservations import nodes_of
from controlplane.domain.scheduling.snapshots import ClaimView, RunningView
from controlplane.domain.scheduling.victims import Region, Victim, order, rank, regions

#: Parts of the network that are tried, those with the least to lose first.
MOST_REGIONS = 8


class Room(NamedTuple):
    """What has to stop for a claim, and where it will run."""

    chip: str
    victims: tuple[RunningView, ...]
    replicas: tuple[ReplicaPlacement, ...]
    #: The rows that it uses, as they are when it runs.
    then: Mapping[int, Then]
    #: Claims that the plan has placed and that must not start.
    starting: tuple[RunningView, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        return nodes_of(self.replicas)


class _Fit(NamedTuple):
    """A place that was found by trying, and the rows that changed."""

    replicas: tuple[ReplicaPlacement, ...]
    then: Mapping[int, Then]


class _Rights(NamedTuple):
    """To the cards of others."""

    #: The queue whose guarantee covers the claim, where that may be taken back; otherwise empty.
    covered_by: str
    #: Less urgent claims of its own queue may be stopped.
    preempts: bool


class Preemptor:
    """Finds victims in one plan; whom it chose once is not chosen again."""

    def __init__(
        self,
        *,
        fleet: Fleet,
        placer: Placer,
        tree: QueueTree,
        running: Sequence[RunningView],
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
        #: Stopping already, and for nobody: their cards come without another victim.
        self._stopping: dict[str, list[RunningView]] = {}
        for view in sorted(running, key=partial(rank, at)):
            if view.revoking:
                # Its queue is judged as if it were gone, or more would be taken than was borrowed.
                tree.leave(view.queue, view.chip, view.amount)
            if view.revoking and not view.revoked_for:
                self._stopping.setdefault(view.chip, []).append(view)
            elif view.preemptible and not view.revoking and view.amount:
                queues = self._ranked.setdefault(view.chip, {})
                queues.setdefault(view.queue, []).append(Victim.of(view, fleet, at))

    def started(self, view: RunningView) -> None:
        """The plan placed a claim."""
        victim = Victim.of(view, self._fleet, self._at, starting=True)
        self._starting.setdefault(view.chip, {}).setdefault(view.queue, []).append(victim)
        places = self._places.get(view.chip)
        if places is not None and view.queue not in places:
            places[view.queue] = len(places)
            below = self._below[view.chip]
            below.setdefault(self._tree.top_of(view.queue), []).append(view.queue)

    def cancel(self, view: RunningView) -> None:
        """The plan places it no more."""
        self._tree.start(view.queue, view.chip, -view.amount)
        starting = self._starting[view.chip]
        starting[view.queue] = [each for each in starting[view.queue] if each.view is not view]

    def make_room(self, claim: ClaimView, chip: str, *, avoid: Mask | None) -> Room | None:
        """The fewest and cheapest that have to stop for the claim; None if that would not help.

        :param avoid: rows that are kept for somebody else.
        """
        rights = self._rights(claim, chip)
        candidates = list(self._candidates(claim, chip, rights))
        if not candidates:
            return None
        least = at_least(claim)
        before = self._fleet.mark()
        try:
            for view in self._stopping.get(chip, ()):
                self._fleet.free(view)
            if self._fits(least, chip, (), avoid) is not None:
                return None
            for region in self._regions(least, chip, candidates, avoid):
                cleared = self._clear(least, chip, region, rights)
                if cleared is not None:
                    return self._fewest(least, chip, *cleared, avoid=region.avoid)
        finally:
            self._fleet.undo(before)
        return None

    def awaited(self, claim: ClaimView, stopping: Sequence[RunningView]) -> Room:
        """What was promised to the claim in an earlier cycle: no second round, however long the first takes."""
        chip = stopping[0].chip
        fit = after(self._fleet, self._placer, stopping, at_least(claim), chip)
        return Room(chip, tuple(stopping), *(fit or _Fit((), {})))

    def stop(self, room: Room, claim: ClaimView) -> tuple[Revocation, ...]:
        """The victims will stop for the claim: why each, in words."""
        revocations = []
        for view in room.victims:
            self._tree.leave(view.queue, view.chip, view.amount)
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

    def _rights(self, claim: ClaimView, chip: str) -> _Rights:
        queue = self._tree.view(claim.queue)
        covered_by = self._tree.room(claim.queue, chip, claim.shape.fewest_amount).covered_by
        return _Rights(covered_by if queue.reclaims else "", queue.preempts)

    def _candidates(self, claim: ClaimView, chip: str, rights: _Rights) -> Iterator[Victim]:
        """Whom it may have stopped now, borrowers of other queues first."""
        if not claim.shape.fewest_amount:
            return
        queues, starting = self._ranked.get(chip, {}), self._starting.get(chip, {})
        if rights.covered_by:
            for queue in self._borrowers(chip, rights.covered_by):
                for victims in (queues.get(queue), starting.get(queue)):
                    if victims and queue != claim.queue and self._due(rights, victims[0], chip):
                        yield from victims
        if rights.preempts:
            yield from takewhile(
                lambda victim: victim.priority < claim.priority,
                queues.get(claim.queue, ()),
            )
            for victim in starting.get(claim.queue, ()):
                if victim.priority < claim.priority:
                    yield victim

    def _borrowers(self, chip: str, covered_by: str) -> list[str]:
        """Queues from which anything might be taken back, in the order of their victims.

        Below each topmost queue they are looked for again only when something changed there.
        """
        places = self._places.get(chip)
        if places is None:
            known_queues = {**self._ranked.get(chip, {}), **self._starting.get(chip, {})}
            places = {queue: place for place, queue in enumerate(known_queues)}
            self._places[chip] = places
            below = self._below[chip] = {}
            for queue in places:
                below.setdefault(self._tree.top_of(queue), []).append(queue)
        # What a queue above the claim's holds itself is not asked for.
        found = {queue for queue in self._tree.way_up(covered_by) if queue in places}
        for top, queues in self._below[chip].items():
            version = self._tree.version_of(top)
            known = self._lending.get((chip, top))
            if known is None or known[0] != version:
                borrowers = [queue for queue in queues if self._tree.borrows_itself(queue, chip)]
                known = self._lending[chip, top] = version, borrowers
            found.update(known[1])
        return sorted(found, key=places.__getitem__)

    def _due(self, rights: _Rights, victim: Victim, chip: str) -> bool:
        """Whether the cards of the victim are due to the claim with those rights."""
        return bool(rights.covered_by) and self._tree.may_take_back(
            rights.covered_by, victim.queue, chip, starting=victim.starting
        )

    # -- By trying --

    def _regions(
        self, claim: ClaimView, chip: str, candidates: Sequence[Victim], avoid: Mask | None
    ) -> list[Region]:
        """What is tried; where that is not all, nothing without the room even if all of them stopped."""
        found = regions(self._fleet, claim, chip, candidates, avoid=avoid)
        if len(found) > MOST_REGIONS:
            before = self._fleet.mark()
            for victim in candidates:
                self._fleet.free(victim.view)
            could = self._placer.could_hold(claim, chip, avoid=avoid)
            self._fleet.undo(before)
            found = [region for region in found if (could & ~region.avoid).any()]
        return found[:MOST_REGIONS]

    def _clear(
        self, claim: ClaimView, chip: str, region: Region, rights: _Rights
    ) -> tuple[list[Victim], _Fit] | None:
        """Victims without which the claim fits, and where; None if it does not fit even so."""
        chosen: dict[str, Victim] = {}
        fit, next_try = None, region.lacking
        for number, bundle in enumerate(region.bundles, start=1):
            for victim in bundle.victims:
                view = victim.view
                if view.uid in chosen:
                    continue
                # With those before it gone, its queue may be back within its guarantee.
                own = view.queue == claim.queue
                if own or self._due(rights, victim, chip):
                    chosen[view.uid] = victim
                    self._tree.leave(view.queue, chip, view.amount, starting=victim.starting)
            if number >= min(next_try, len(region.bundles)):
                fit = self._fits(claim, chip, list(chosen.values()), region.avoid)
                if fit is not None:
                    break
                next_try = 2 * number - region.lacking + 1
        for victim in chosen.values():
            amount = -victim.view.amount
            self._tree.leave(victim.queue, chip, amount, starting=victim.starting)
        return None if fit is None else (list(chosen.values()), fit)

    def _fewest(
        self, claim: ClaimView, chip: str, victims: list[Victim], fit: _Fit, *, avoid: Mask
    ) -> Room:
        """Those of the victims that are needed, all of them: without any one it would not fit."""
        used = set(nodes_of(fit.replicas))
        near = [each for each in victims if not used.isdisjoint(nodes_of(each.view.replicas))]
        if (found := self._fits(claim, chip, near, avoid)) is not None:
            victims, fit = near, found
        for victim in sorted(victims, key=partial(order, claim), reverse=True):
            without = [other for other in victims if other is not victim]
            if (found := self._fits(claim, chip, without, avoid)) is not None:
                victims, fit = without, found
        starting = tuple(victim.view for victim in victims if victim.starting)
        running = tuple(victim.view for victim in victims if not victim.starting)
        return Room(chip, running, *fit, starting)

    def _fits(
        self, claim: ClaimView, chip: str, victims: Sequence[Victim], avoid: Mask | None
    ) -> _Fit | None:
        """Where the claim would go without those victims; the fleet and the tree stay as they are."""
        if not self._allowed(claim, chip, victims):
            return None
        stopped = [victim.view for victim in victims]
        return after(self._fleet, self._placer, stopped, claim, chip, avoid=avoid)

    def _allowed(self, claim: ClaimView, chip: str, victims: Sequence[Victim]) -> bool:
        """Whether its queue may have the claim once the victims hold nothing."""
        amount = claim.shape.amount
        if self._tree.room(claim.queue, chip, amount).shortage is None:
            return True
        held: Counter[str] = Counter()
        for victim in victims:
            held[victim.queue] += victim.view.amount
        for queue, freed in held.items():
            self._tree.charge(queue, chip, -freed)
        shortage = self._tree.room(claim.queue, chip, amount).shortage
        for queue, freed in held.items():
            self._tree.charge(queue, chip, freed)
        return shortage is None


def after(
    fleet: Fleet,
    placer: Placer,
    victims: Iterable[RunningView],
    claim: ClaimView,
    chip: str,
    *,
    avoid: Mask | None = None,
) -> _Fit | None:
    """Where the claim would go once those have ended; the fleet stays as it is."""
    before, fit = fleet.mark(), None
    for view in victims:
        fleet.free(view)
    replicas = placer.place(claim, chip, avoid=avoid)
    if replicas is not None:
        fit = _Fit(replicas, fleet.since(before))
    fleet.undo(before)
    return fit
