"""One scheduling cycle, in six steps over a snapshot.

1. **Account**: what each queue holds, up the tree; what is free in the fleet.
2. **Order**: who is next, after each admission anew (``ordering``).
3. **Check** the queue, up the tree: is it open, may it have so many more cards of a chip (``domain.quotas``),
   may the claim's person run one more (``people``)?
4. **Place** the whole gang on the first of its chips that has room (``placement``).
5. **Take back**: a claim that is owed cards and found none has others stop for it (``preemption``).
6. **Reserve**: of those that still wait, the first keep room; who comes later passes them only where it does
   not delay them (``reservations``).

Claims that ask for the same as one that was refused are refused with it. Nothing here knows the time, a
database or chance: the same snapshot and state always give the same plan.

Where the attempts of a cycle are too few, a *round* takes several cycles, and its state goes from one to the next.
Each of these spends half of its attempts on the first claims in order, as always; with the others the queues take
turns, only with what the round has not tried yet. So claims that find no room never keep others from being tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, groupby
from typing import NamedTuple

from controlplane.domain.quotas import Limit, Shortage
from controlplane.domain.scheduling.accounts import nominated, queue_tree
from controlplane.domain.scheduling.capacity import Capacity
from controlplane.domain.scheduling.early_evictions import withdraw_early_evictions
from controlplane.domain.scheduling.elastic import at_most
from controlplane.domain.scheduling.explain import (
    explain_awaited,
    explain_faster,
    explain_person,
    explain_placement,
    explain_reserved,
    explain_shortage,
    not_looked_at,
)
from controlplane.domain.scheduling.fleet import Fleet
from controlplane.domain.scheduling.lines import Line, SearchKey
from controlplane.domain.scheduling.obstacles import LASTING, Obstacles
from controlplane.domain.scheduling.ordering import Order
from controlplane.domain.scheduling.people import People
from controlplane.domain.scheduling.placement import Placer
from controlplane.domain.scheduling.plans import (
    Placement,
    Plan,
    Reason,
    RefusalCode,
    Refusals,
    Refused,
    ReplicaPlacement,
    Reservation,
    Revocation,
    SchedulerState,
    Verdict,
)
from controlplane.domain.scheduling.policies import Policy
from controlplane.domain.scheduling.preemption import Preemptor, Room
from controlplane.domain.scheduling.reservations import Reservations
from controlplane.domain.scheduling.runtimes import runtime_on
from controlplane.domain.scheduling.shapes import typical_of
from controlplane.domain.scheduling.snapshots import ClaimView, Kind, RunningView, Snapshot

#: Reasons of one claim alone: others of its kind may be luckier.
_ITS_OWN = frozenset(
    {RefusalCode.AWAITS_CARDS, RefusalCode.AWAITS_FASTER, RefusalCode.PERSON_LIMIT}
)
#: While a round of attempts goes on, the part of them for the first claims in order.
_IN_ORDER = 0.5
#: Reasons for which nobody has to stop, nor room to be kept, on a chip.
_NO_USE = LASTING | {RefusalCode.AWAITS_FASTER}


def plan(
    snapshot: Snapshot, policy: Policy, at: datetime, state: SchedulerState | None = None
) -> Plan:
    """Decide for every waiting claim; what the next cycle would evict does not start.

    :param state: of the plan before; without it, a new round of searches begins.
    :raises ValueError: if a claim accepts no chip.
    """
    decided = _plan_once(snapshot, policy, at, state or SchedulerState())
    if not policy.preemption:
        return decided
    return withdraw_early_evictions(
        decided,
        snapshot,
        at,
        next_plan=lambda after, before: _plan_once(after, policy, at, before.state),
    )


def _plan_once(snapshot: Snapshot, policy: Policy, at: datetime, state: SchedulerState) -> Plan:
    untried, deferred = state.untried, state.deferred
    cycle = Cycle(snapshot, policy, at)
    order = cycle.order(
        [claim for claim in snapshot.claims if claim.uid not in deferred]
        if deferred
        else snapshot.claims
    )
    cycle.decide_each(order, part=_IN_ORDER if untried else 1)
    if untried:
        cycle.decide_each(order.turns(untried))
    lines = order.rest()
    if deferred:
        last = cycle.order([claim for claim in snapshot.claims if claim.uid in deferred])
        cycle.decide_each(last)
        lines = chain(lines, last.rest())
    left: set[SearchKey] = set()
    for line in lines:
        left.update(cycle.untried(line))
        cycle.pass_over(line)
    # Whoever is left because enough were placed needs no round: those in front go first again.
    begins = not untried and cycle.attempts >= policy.attempts_per_cycle
    return cycle.decided(SchedulerState(untried=frozenset(left if begins else left & untried)))


class _Opening(NamedTuple):
    """A chip on which the queue may have the claim."""

    chip: str
    #: With no more replicas than the queue may have.
    claim: ClaimView
    #: It is within a guarantee.
    owed: bool


class Cycle:
    """A plan as it grows."""

    def __init__(self, snapshot: Snapshot, policy: Policy, at: datetime) -> None:
        self._policy = policy
        self._at = at
        self._fleet = Fleet(snapshot)
        self._placer = Placer(self._fleet, typical_of(snapshot))
        capacity = Capacity(self._fleet)
        self.freed = nominated(snapshot)
        self.tree = queue_tree(snapshot, self.freed)
        #: As if nobody held anything.
        self._unused = self.tree.unused()
        self._obstacles = Obstacles(self._fleet, self._placer, capacity)
        self._preemptor = Preemptor(
            fleet=self._fleet,
            placer=self._placer,
            tree=self.tree,
            running=snapshot.running,
            at=at,
        )
        self._reservations = Reservations(
            fleet=self._fleet,
            placer=self._placer,
            capacity=capacity,
            running=snapshot.running,
            at=at,
            backfill=policy.backfill,
        )
        self._people = People(snapshot.queues, snapshot.running)
        #: Queues of the claims that room is kept for.
        self._keeping: dict[str, str] = {}
        self._names = {node.uid: node.name for node in snapshot.nodes}
        #: Claims that were told to stop, by the waiting claim that they were told for.
        self._stopping: dict[str, list[RunningView]] = {}
        for view in snapshot.running:
            if view.revoked_for:
                self._stopping.setdefault(view.revoked_for, []).append(view)
        #: By claim.
        self._placements: dict[str, Placement] = {}
        #: Claims that were placed, and that an owed claim may still keep from starting.
        self._starting: dict[str, ClaimView] = {}
        self._cancelled: set[str] = set()
        self._refusals: list[Refused] = []
        self._revocations: list[Revocation] = []
        self._promised: list[Reservation] = []
        #: Cards are on their way to these: what holds for others of their kind does not hold for them.
        self.like_no_other = {*self.freed, *self._fleet.nominated, *self._stopping}
        self._verdicts: dict[Kind, Verdict] = {}
        #: Claims that were decided without a search.
        self._unsearched = 0
        #: Claims that others stop for, and claims that keep room.
        self._reclaims = self._waiting = 0

    def order(self, claims: Sequence[ClaimView]) -> Order:
        """Those claims in the order in which they are decided, as what was admitted has it."""
        return Order(
            claims, self.tree, settle=self.settle, freed=self.freed, alone=self.like_no_other
        )

    @property
    def attempts(self) -> int:
        """Searches, and claims for which none was made: to say why they wait takes as long.

        What it takes to keep room for a few has a bound of its own.
        """
        return self._placer.searches - self._reservations.searches + self._unsearched

    def decided(self, state: SchedulerState) -> Plan:
        return Plan(
            state=state,
            placements=tuple(self._placements.values()),
            refusals=Refusals(self._refusals),
            revocations=tuple(self._revocations),
            reservations=(*self._promised, *self._reservations.made),
            verdicts=self._verdicts,
        )

    def decide_each(self, claims: Iterable[ClaimView], *, part: float = 1) -> None:
        """Decide one by one until that part of the attempts is spent, or enough are placed; at least for one."""
        policy = self._policy
        most = policy.attempts_per_cycle * part
        if most and len(self._placements) < policy.placements_per_cycle:
            for claim in claims:
                self.decide(claim)
                if self.attempts >= most or len(self._placements) >= policy.placements_per_cycle:
                    break

    def decide(self, claim: ClaimView) -> bool:
        """Place the claim, or keep why it waits; say whether it was placed."""
        before = self.attempts
        reason = self._consider(claim)
        self._unsearched += self.attempts == before
        if reason is None:
            return True
        self._refusals.append(Refused(reason, (claim,)))
        if reason.code not in _ITS_OWN and claim.uid not in self.like_no_other:
            self._verdicts[claim.kind] = Verdict(reason, claim.place)
        return False

    def settle(self, line: Line) -> None:
        """Refuse the next in the line for as long as one like it was refused; they leave it."""
        while line and (kind := line.kind) is not None and kind in self._verdicts:
            self._refuse(line.drop(), self._verdicts[kind].reason)

    def untried(self, line: Line) -> Iterator[SearchKey]:
        """Of those left in the line, whom no search was made for."""
        return (key for key in line.search_keys() if key not in self._verdicts)

    def pass_over(self, line: Line) -> None:
        """Refuse all of the line: as one like it was, or as nobody had the time to look at it."""
        spent = not_looked_at(len(self._placements), self.attempts)
        while line:
            verdict = self._verdicts.get(line.kind) if line.kind else None
            self._refuse(line.drop(), verdict.reason if verdict else spent)

    def _refuse(self, claims: Sequence[ClaimView], reason: Reason) -> None:
        self._refusals.append(Refused(reason, claims))

    def _consider(self, claim: ClaimView) -> Reason | None:
        """Steps 3 to 6 for one claim; None if it was placed."""
        if not claim.chips:
            raise ValueError(f"claim {claim.uid} accepts no chip")
        limit = self._people.limit(claim)
        if limit is not None and not self._closed(claim):
            return explain_person(limit)
        before = self._fleet.mark()
        self._fleet.open_for(claim.uid)
        self._hold_nominated(claim, -1)
        openings, reasons = self._check(claim)
        if self._place(openings, reasons):
            self._starting[claim.uid] = claim
            return None
        if stopping := self._stopping.get(claim.uid):
            room: Room | None = self._preemptor.awaited(claim, stopping)
        else:
            reasons = {each.chip: self._obstacle(each) for each in openings} | reasons
            hopeful = [chip for chip in claim.chips if reasons[chip].code not in _NO_USE]
            room = self._take_back(claim, hopeful)
            if room is not None and room.starting:
                self._fleet.undo(before)
                self._hold_nominated(claim, 1)
                return self._start_instead(claim, room.starting)
            if room is None:
                self._reserve(claim, [each for each in openings if each.chip in hopeful])
        self._fleet.undo(before)
        self._hold_nominated(claim, 1)
        if room is not None:
            self._promise(claim, room)
            return explain_awaited(room.chip, room.victims)
        waits = (each for each in reasons.values() if each.code is RefusalCode.AWAITS_FASTER)
        # Otherwise the reason of the chip that it prefers of those that may ever do.
        useful = (chip for chip in claim.chips if reasons[chip].code not in _NO_USE)
        return next(waits, reasons[next(useful, claim.chips[0])])

    def _hold_nominated(self, claim: ClaimView, sign: int) -> None:
        """Its queue holds the cards that were freed for it, until it is its turn and if it waits on."""
        for chip, cards in self.freed.get(claim.uid, {}).items():
            self.tree.start(claim.queue, chip, sign * cards)

    def _lacking(self, claim: ClaimView, chip: str) -> int:
        """Thousandths of cards without which it does not start, beside what was freed for it."""
        freed = self.freed.get(claim.uid, Counter())[chip]
        return max(0, claim.shape.fewest_amount - freed)

    # -- 3: check the queue --

    def _check(self, claim: ClaimView) -> tuple[list[_Opening], dict[str, Reason]]:
        """The chips that its queue may have it on, in order of preference; why not, for each of the others."""
        openings: list[_Opening] = []
        reasons: dict[str, Reason] = {}
        kind = claim.kind
        for chip in claim.chips:
            verdict = self.tree.room(claim.queue, chip, kind.fewest)
            if verdict.shortage is None or _none_free(verdict.shortage):
                narrowed = claim
                if kind.most > kind.fewest:
                    most = self.tree.most(claim.queue, chip, kind.most)
                    narrowed = at_most(claim, most)
                openings.append(_Opening(chip, narrowed, bool(verdict.covered_by)))
            else:
                reasons[chip] = explain_shortage(verdict.shortage)
        return openings, reasons

    def _closed(self, claim: ClaimView) -> bool:
        shortage = self.tree.room(claim.queue, claim.chips[0], claim.kind.fewest).shortage
        return shortage is not None and shortage.limit is Limit.CLOSED

    # -- 4: place --

    def _place(self, openings: list[_Opening], reasons: dict[str, Reason]) -> bool:
        """On the first chip that has room, of equally good ones on that where it fits best.

        Unless the claim ends sooner if it waits for one before it.
        """
        preferred: list[_Opening] = []
        for group in _groups(openings):
            claim = group[0].claim
            before = self._fleet.mark()
            choices = [
                (chip, self._reservations.avoid(claim, chip, owed=owed)) for chip, _, owed in group
            ]
            found = self._placer.place_on_best(claim, choices)
            if found is not None:
                chip, replicas = found
                faster = self._better_later(claim, chip, preferred)
                if not faster:
                    self._start(claim, chip, replicas)
                    return True
                self._fleet.undo(before)
                for each in group:
                    reasons[each.chip] = explain_faster(claim, each.chip, faster)
            preferred += group
        return False

    def _better_later(self, placed: ClaimView, on: str, preferred: list[_Opening]) -> str:
        """The faster chip, busy now, on which it would end sooner; empty if none, or no room is kept for it."""
        slow = runtime_on(placed, on)
        if slow is None or self._waiting >= self._policy.reservations:
            return ""
        for chip, claim, owed in preferred:
            fast = runtime_on(claim, chip)
            if fast is not None and fast < slow:
                starts_at = self._reservations.starts_at(claim, chip, owed=owed)
                if starts_at is not None and starts_at - self._at < slow - fast:
                    return chip
        return ""

    def _start(self, claim: ClaimView, chip: str, replicas: tuple[ReplicaPlacement, ...]) -> None:
        self._placements[claim.uid] = explain_placement(claim, chip, replicas, self._names)
        self._people.start(claim)
        runtime = runtime_on(claim, chip)
        view = RunningView(
            uid=claim.uid,
            queue=claim.queue,
            shape=claim.shape,
            chip=chip,
            priority=claim.priority,
            admitted_at=self._at,
            replicas=replicas,
            ends_at=None if runtime is None else self._at + runtime,
            person=claim.person,
        )
        self.tree.start(claim.queue, chip, view.amount)
        if runtime is not None:
            self._reservations.started(view)
        if claim.uid not in self.like_no_other and claim.uid not in self._cancelled:
            # Otherwise cards are nominated for it, or it has lost its place to another once.
            self._preemptor.started(view)

    def _obstacle(self, opening: _Opening) -> Reason:
        """Why it found no room: what is kept for others, or the fleet itself."""
        chip, claim, owed = opening
        first = self._reservations.in_the_way(claim, chip, owed=owed)
        if first:
            before = self._fleet.mark()
            fits = self._placer.place(claim, chip) is not None
            self._fleet.undo(before)
            if fits:
                queue = self.tree.view(self._keeping[first]).name
                return explain_reserved(claim, chip, queue=queue)
        return self._obstacles.explain(claim, chip)

    # -- 5: take back --

    def _take_back(self, claim: ClaimView, chips: list[str]) -> Room | None:
        """Have others stop for a claim that is owed their cards."""
        if not self._policy.preemption or self._reclaims >= self._policy.reclaims_per_cycle:
            return None
        if self._closed(claim):
            return None
        for chip in chips:
            verdict = self.tree.room(claim.queue, chip, claim.kind.fewest)
            owed = bool(verdict.covered_by)
            avoid = self._reservations.avoid(claim, chip, owed=owed)
            room = self._preemptor.make_room(claim, chip, avoid=avoid)
            if room is not None:
                if not room.starting:
                    self._reclaims += 1
                    self._revocations += self._preemptor.stop(room, claim)
                return room
        return None

    def _start_instead(self, claim: ClaimView, others: Sequence[RunningView]) -> Reason | None:
        """Decide for the claim as if the others did not start, which the next cycle would evict; then for them."""
        for view in others:
            del self._placements[view.uid]
            self._cancelled.add(view.uid)
            self._preemptor.cancel(view)
            self._reservations.cancel(view)
            self._people.cancel(view)
            self._fleet.free(view)
        reason = self._consider(claim)
        for view in others:
            self.decide(self._starting.pop(view.uid))
        return reason

    def _promise(self, claim: ClaimView, room: Room) -> None:
        """Nobody else gets what it will take, nor its queue's right to it."""
        self._people.promise(claim)
        self._fleet.limit(room.then)
        self._promised.append(Reservation(claim=claim.uid, nodes=room.nodes, starts_at=None))
        self.tree.owe(claim.queue, room.chip, self._lacking(claim, room.chip))

    # -- 6: reserve --

    def _reserve(self, claim: ClaimView, openings: list[_Opening]) -> None:
        """Keep room for one of the first that wait, and its queue's leave to use it."""
        if self._waiting >= self._policy.reservations:
            return
        rights = {opening.chip: opening.owed for opening in openings}
        chip = self._reservations.reserve(claim, rights)
        if chip is None and not self._keep_leave(claim):
            return
        self._waiting += 1
        self._keeping[claim.uid] = claim.queue
        self._people.promise(claim)
        if chip is None:
            return
        if rights[chip]:
            self.tree.owe(claim.queue, chip, self._lacking(claim, chip))
        else:
            self.tree.wish(claim.queue, chip, self._lacking(claim, chip))

    def _keep_leave(self, claim: ClaimView) -> bool:
        """Let those behind it not use up what its queue waits for, on the first chip that it may have one day."""
        amount = claim.kind.fewest
        for chip in claim.chips:
            verdict = self.tree.room(claim.queue, chip, amount)
            shortage = verdict.shortage
            if shortage is None or _none_free(shortage):
                continue
            if self._unused.room(claim.queue, chip, amount).shortage is not None:
                continue
            if self._obstacles.lasting(claim, chip) is not None:
                continue
            if shortage.limit is Limit.KEPT_BY_OTHERS:
                self.tree.owe(claim.queue, chip, self._lacking(claim, chip))
            else:
                lendable = shortage.limit is Limit.NOTHING_TO_BORROW
                self.tree.wish(claim.queue, chip, self._lacking(claim, chip), lendable=lendable)
            return True
        return False


def _groups(openings: Sequence[_Opening]) -> list[list[_Opening]]:
    """The openings in the order in which they are tried, those together that are equally good.

    A chip within the queue's guarantee is better than one that it has to borrow.
    """
    equal = [each for each in openings if each.chip in each.claim.chips[: each.claim.equal_chips]]
    alike = groupby(sorted(equal, key=_unowed), key=_likeness)
    return [*(list(group) for _, group in alike), *([each] for each in openings[len(equal) :])]


def _unowed(opening: _Opening) -> bool:
    return not opening.owed


def _likeness(opening: _Opening) -> Hashable:
    claim = opening.claim
    return opening.owed, claim.shape.cards, runtime_on(claim, opening.chip)


def _none_free(shortage: Shortage) -> bool:
    """Others keep what is free, but so many are not free at all: let the fleet say so, and keep room for it."""
    kept = shortage.limit in (Limit.NOTHING_TO_BORROW, Limit.KEPT_BY_OTHERS)
    return kept and shortage.wanted > shortage.bound
