"""One scheduling cycle, in six steps over a snapshot.

1. **Account**: what each queue holds, up the tree; what is free in the fleet.
2. **Order**: which claim is next, computed again after each admission (``pending_queues``).
3. **Check** the queue, up the tree: is it open, may it have that many more cards of a chip (``quotas.tree``),
   may the claim's user run one more (``per_user_limits``)?
4. **Place** the whole gang on the first of its chips that has room (``placement``).
5. **Preempt**: a claim that is entitled to cards and found none has others evicted for it (``preemption``).
6. **Reserve**: of the claims still pending, the first reserve nodes; later claims overtake them only where that
   does not delay them (``reservations``).

Claims of one equivalence class are left pending together. Nothing here reads the clock, a database or a random
number: the same snapshot and state always give the same plan.

Where the attempts of a cycle are too few, a *round* takes several cycles, and its state is passed from one to
the next. Each of these spends half of its attempts on the first claims in order, as always; with the rest the
queues alternate, only with what the round has not tried yet. So claims that find no room never keep others from
being tried.

A cycle is a no-op if it starts and evicts nothing and evaluates all claims. While nodes, queues, running claims
and the claims that were pending stay the same, the next plan would give the same reasons, and claims that arrived
behind one of their equivalence class have the reason of that one: ``plan`` then decides only the new claims. The
start of a reservation and the typical requests change with time alone, so a no-op plan is valid for a moment
only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, groupby
from typing import NamedTuple

from controlplane.domain.common.reasons import Reason
from controlplane.domain.quotas.tree import QuotaLimit, QuotaShortage
from controlplane.domain.scheduling.blockers import PERMANENT_CODES, BlockerFinder
from controlplane.domain.scheduling.early_evictions import withdraw_early_evictions
from controlplane.domain.scheduling.explanations import (
    explain_awaiting_evictions,
    explain_awaiting_faster_chip,
    explain_not_evaluated,
    explain_placement,
    explain_reserved,
    explain_shortage,
    explain_user_limit,
)
from controlplane.domain.scheduling.node_table import NodeTable, TotalCapacity
from controlplane.domain.scheduling.pending_queues import (
    ClaimOrder,
    PendingQueue,
    SearchKey,
    find_nominated_cards,
    queue_tree,
)
from controlplane.domain.scheduling.per_user_limits import UserClaimCounts
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.plans import (
    ClaimPlacement,
    EquivalenceClassReason,
    PendingClaims,
    PendingCode,
    PendingGroup,
    PendingReason,
    Reservation,
    Revocation,
    SchedulerState,
    SchedulingPlan,
    SchedulingPolicy,
    UnchangedPlan,
)
from controlplane.domain.scheduling.preemption import PreemptionPlan, Preemptor
from controlplane.domain.scheduling.reservations import Reservations
from controlplane.domain.scheduling.runtime_estimates import runtime_on
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    EquivalenceClass,
    ReplicaPlacement,
    RunningClaim,
    SchedulingSnapshot,
    limited_claim,
)
from controlplane.domain.scheduling.typical_requests import typical_requests

#: Reasons of one claim alone: others of its class may be placed.
_PER_CLAIM_CODES = frozenset(
    {PendingCode.AWAITING_EVICTIONS, PendingCode.AWAITING_FASTER_CHIP, PendingCode.USER_LIMIT}
)
#: While a round of attempts goes on, the part of them for the first claims in order.
_IN_ORDER = 0.5
#: How long the plan of a no-op cycle is valid.
NO_OP_PLAN_VALID_FOR = timedelta(seconds=1)
#: Reasons for which neither eviction nor a reservation helps on a chip.
_HOPELESS_CODES = PERMANENT_CODES | {PendingCode.AWAITING_FASTER_CHIP}


def plan(
    snapshot: SchedulingSnapshot, policy: SchedulingPolicy, state: SchedulerState, at: datetime
) -> SchedulingPlan:
    """Plan as ``plan_cycle`` does; after a no-op cycle, only the claims that arrived since the last plan.

    :param state: of the plan before.
    :raises ValueError: if a claim accepts no chip.
    """
    last = state.no_op
    if (
        last is not None
        and (pending := _reasons_for_new_claims(last, snapshot, policy, at)) is not None
    ):
        return SchedulingPlan(
            pending=pending, state=replace(state, no_op=last._replace(snapshot=snapshot))
        )
    decided = plan_cycle(snapshot, policy, at, state)
    moved = decided.placements or decided.revocations
    if moved or state.deferred or decided.state.deferred or decided.any_not_evaluated:
        return decided
    no_op = UnchangedPlan(snapshot, policy, at, decided.class_reasons)
    return replace(decided, state=replace(decided.state, no_op=no_op))


def _reasons_for_new_claims(
    last: UnchangedPlan, snapshot: SchedulingSnapshot, policy: SchedulingPolicy, at: datetime
) -> PendingClaims | None:
    """Return why claims that arrived since are pending; None if a new plan is needed."""
    before = last.snapshot
    if policy != last.policy or not timedelta(0) <= at - last.at < NO_OP_PLAN_VALID_FOR:
        return None
    if (before.nodes, before.running) != (snapshot.nodes, snapshot.running):
        return None
    known = len(before.claims)
    if before.queues != snapshot.queues or before.claims != snapshot.claims[:known]:
        return None
    if len(snapshot.claims) == known:
        # No claim arrived: the plan was requested because time has passed.
        return None
    refused: list[PendingGroup] = []
    for claim in snapshot.claims[known:]:
        verdict = last.class_reasons.get(claim.equivalence_class)
        if verdict is None or claim.position < verdict.behind:
            return None
        refused.append(PendingGroup(verdict.reason, (claim,)))
    return PendingClaims(refused)


def plan_cycle(
    snapshot: SchedulingSnapshot,
    policy: SchedulingPolicy,
    at: datetime,
    state: SchedulerState | None = None,
) -> SchedulingPlan:
    """Decide for every pending claim; what the next cycle would evict does not start.

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


def _plan_once(
    snapshot: SchedulingSnapshot, policy: SchedulingPolicy, at: datetime, state: SchedulerState
) -> SchedulingPlan:
    untried, deferred = state.untried, state.deferred
    cycle = Cycle(snapshot, policy, at)
    order = cycle.order(
        [claim for claim in snapshot.claims if claim.uid not in deferred]
        if deferred
        else snapshot.claims
    )
    cycle.decide_each(order, part=_IN_ORDER if untried else 1)
    if untried:
        cycle.decide_each(order.round_robin(untried))
    lines = order.remaining()
    if deferred:
        last = cycle.order([claim for claim in snapshot.claims if claim.uid in deferred])
        cycle.decide_each(last)
        lines = chain(lines, last.remaining())
    left: set[SearchKey] = set()
    for line in lines:
        left.update(cycle.untried(line))
        cycle.leave_pending(line)
    # Whoever is left because enough were placed needs no round: those in front go first again.
    begins = not untried and cycle.attempts >= policy.attempts_per_cycle
    return cycle.decided(SchedulerState(untried=frozenset(left if begins else left & untried)))


class _CandidateChip(NamedTuple):
    """A chip on which the queue may have the claim."""

    chip: str
    #: With no more replicas than the queue may have.
    claim: ClaimSnapshot
    #: It is within a guarantee.
    within_guarantee: bool


class Cycle:
    """A plan while it is computed."""

    def __init__(
        self, snapshot: SchedulingSnapshot, policy: SchedulingPolicy, at: datetime
    ) -> None:
        self._policy = policy
        self._at = at
        self._fleet = NodeTable(snapshot)
        self._placer = PlacementFinder(self._fleet, typical_requests(snapshot))
        capacity = TotalCapacity(self._fleet)
        self.nominated_cards = find_nominated_cards(snapshot)
        self.tree = queue_tree(snapshot, self.nominated_cards)
        #: The tree as if no claim held anything.
        self._tree_without_usage = self.tree.without_usage()
        self._blockers = BlockerFinder(self._fleet, self._placer, capacity)
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
        self._user_counts = UserClaimCounts(snapshot.queues, snapshot.running)
        #: Queues of the claims with reservations, by claim.
        self._reserving_queues: dict[str, str] = {}
        self._names = {node.uid: node.name for node in snapshot.nodes}
        #: Claims that are being evicted, by the pending claim that they are evicted for.
        self._stopping: dict[str, list[RunningClaim]] = {}
        for view in snapshot.running:
            if view.revoked_for:
                self._stopping.setdefault(view.revoked_for, []).append(view)
        #: By claim.
        self._placements: dict[str, ClaimPlacement] = {}
        #: Claims that were placed, and that a claim within a guarantee may still keep from starting.
        self._starting: dict[str, ClaimSnapshot] = {}
        self._cancelled: set[str] = set()
        self._pending: list[PendingGroup] = []
        self._revocations: list[Revocation] = []
        self._nominations: list[Reservation] = []
        #: Claims with nominated cards: what holds for others of their class does not hold for them.
        self.unique_claims = {*self.nominated_cards, *self._fleet.nominated, *self._stopping}
        self._class_reasons: dict[EquivalenceClass, EquivalenceClassReason] = {}
        #: Claims that were decided without a search.
        self._unsearched = 0
        #: Claims that others are evicted for, and claims with reservations.
        self._reclaims = self._reservation_count = 0

    def order(self, claims: Sequence[ClaimSnapshot]) -> ClaimOrder:
        """Return those claims in the order in which they are decided, which follows admissions."""
        return ClaimOrder(
            claims,
            self.tree,
            drop_refused=self.drop_refused,
            nominated_cards=self.nominated_cards,
            unique=self.unique_claims,
        )

    @property
    def attempts(self) -> int:
        """Searches, and claims for which none was made: to say why they wait takes as long.

        What it takes to keep room for a few has a bound of its own.
        """
        return self._placer.searches - self._reservations.searches + self._unsearched

    def decided(self, state: SchedulerState) -> SchedulingPlan:
        return SchedulingPlan(
            state=state,
            placements=tuple(self._placements.values()),
            pending=PendingClaims(self._pending),
            revocations=tuple(self._revocations),
            reservations=(*self._nominations, *self._reservations.reserved),
            class_reasons=self._class_reasons,
        )

    def decide_each(self, claims: Iterable[ClaimSnapshot], *, part: float = 1) -> None:
        """Decide one by one until that part of the attempts is spent, or enough are placed; at least for one."""
        policy = self._policy
        most = policy.attempts_per_cycle * part
        if most and len(self._placements) < policy.placements_per_cycle:
            for claim in claims:
                self.decide(claim)
                if self.attempts >= most or len(self._placements) >= policy.placements_per_cycle:
                    break

    def decide(self, claim: ClaimSnapshot) -> bool:
        """Place the claim or record why it is pending; return whether it was placed."""
        before = self.attempts
        reason = self._consider_claim(claim)
        self._unsearched += self.attempts == before
        if reason is None:
            return True
        self._pending.append(PendingGroup(reason, (claim,)))
        if reason.code not in _PER_CLAIM_CODES and claim.uid not in self.unique_claims:
            self._class_reasons[claim.equivalence_class] = EquivalenceClassReason(
                reason, claim.position
            )
        return False

    def drop_refused(self, line: PendingQueue) -> None:
        """Leave the next claims pending for as long as one of their class was; they leave the queue."""
        while (
            line
            and (equivalence_class := line.equivalence_class) is not None
            and equivalence_class in self._class_reasons
        ):
            self._leave_pending(line.drop(), self._class_reasons[equivalence_class].reason)

    def untried(self, line: PendingQueue) -> Iterator[SearchKey]:
        """Yield the search keys left in the queue that no search was made for."""
        return (key for key in line.search_keys() if key not in self._class_reasons)

    def leave_pending(self, line: PendingQueue) -> None:
        """Leave the whole queue pending, for the reason of its classes or because it was not evaluated."""
        spent = explain_not_evaluated(len(self._placements), self.attempts)
        while line:
            decision = (
                self._class_reasons.get(line.equivalence_class) if line.equivalence_class else None
            )
            self._leave_pending(line.drop(), decision.reason if decision else spent)

    def _leave_pending(self, claims: Sequence[ClaimSnapshot], reason: PendingReason) -> None:
        self._pending.append(PendingGroup(reason, claims))

    def _consider_claim(self, claim: ClaimSnapshot) -> PendingReason | None:
        """Run steps 3 to 6 for one claim; return None if it was placed."""
        if not claim.chips:
            raise ValueError(
                Reason(
                    "claim.chips.missing", "claim {claim} has no acceptable chip", claim=claim.uid
                )
            )
        limit = self._user_counts.limit(claim)
        if limit is not None and not self._is_queue_closed(claim):
            return explain_user_limit(limit)
        before = self._fleet.mark()
        self._fleet.use_nominated(claim.uid)
        self._charge_nominated(claim, -1)
        options, reasons = self._check_quota(claim)
        if self._place_claim(options, reasons):
            self._starting[claim.uid] = claim
            return None
        if stopping := self._stopping.get(claim.uid):
            room: PreemptionPlan | None = self._preemptor.awaited(claim, stopping)
        else:
            reasons = {each.chip: self._find_blocker(each) for each in options} | reasons
            usable = [chip for chip in claim.chips if reasons[chip].code not in _HOPELESS_CODES]
            room = self._plan_preemption(claim, usable)
            if room is not None and room.starting:
                self._fleet.undo(before)
                self._charge_nominated(claim, 1)
                return self._replace_starts(claim, room.starting)
            if room is None:
                self._reserve_nodes(claim, [each for each in options if each.chip in usable])
        self._fleet.undo(before)
        self._charge_nominated(claim, 1)
        if room is not None:
            self._nominate_claim(claim, room)
            return explain_awaiting_evictions(room.chip, room.victims)
        awaiting = (
            each for each in reasons.values() if each.code is PendingCode.AWAITING_FASTER_CHIP
        )
        # Otherwise the reason of the chip that it prefers of those that may ever do.
        useful = (chip for chip in claim.chips if reasons[chip].code not in _HOPELESS_CODES)
        return next(awaiting, reasons[next(useful, claim.chips[0])])

    def _charge_nominated(self, claim: ClaimSnapshot, sign: int) -> None:
        """Count the nominated cards for its queue until the claim is decided, and again if it stays pending."""
        for chip, cards in self.nominated_cards.get(claim.uid, {}).items():
            self.tree.start(claim.queue, chip, sign * cards)

    def _lacking_cards(self, claim: ClaimSnapshot, chip: str) -> int:
        """Thousandths of cards that it needs to start beyond those nominated for it."""
        nominated_cards = self.nominated_cards.get(claim.uid, Counter())[chip]
        return max(0, claim.shape.fewest_amount - nominated_cards)

    # -- 3: check the queue --

    def _check_quota(
        self, claim: ClaimSnapshot
    ) -> tuple[list[_CandidateChip], dict[str, PendingReason]]:
        """Return the chips that its queue may have it on, preferred first, and why not for each other chip."""
        options: list[_CandidateChip] = []
        reasons: dict[str, PendingReason] = {}
        equivalence_class = claim.equivalence_class
        for chip in claim.chips:
            decision = self.tree.check(claim.queue, chip, equivalence_class.fewest)
            if decision.shortage is None or _no_free_cards_reason(decision.shortage):
                narrowed = claim
                if equivalence_class.most > equivalence_class.fewest:
                    most = self.tree.max_admissible(claim.queue, chip, equivalence_class.most)
                    narrowed = limited_claim(claim, most)
                options.append(_CandidateChip(chip, narrowed, bool(decision.covered_by)))
            else:
                reasons[chip] = explain_shortage(decision.shortage)
        return options, reasons

    def _is_queue_closed(self, claim: ClaimSnapshot) -> bool:
        shortage = self.tree.check(
            claim.queue, claim.chips[0], claim.equivalence_class.fewest
        ).shortage
        return shortage is not None and shortage.limit is QuotaLimit.CLOSED

    # -- 4: place --

    def _place_claim(
        self, options: list[_CandidateChip], reasons: dict[str, PendingReason]
    ) -> bool:
        """Place it on the first chip with room; among equally good chips on the one where it fits best.

        Not if the claim ends sooner when it waits for a preferred chip.
        """
        preferred: list[_CandidateChip] = []
        for group in _group_equal_chips(options):
            claim = group[0].claim
            before = self._fleet.mark()
            choices = [
                (chip, self._reservations.avoid(claim, chip, within_guarantee=within_guarantee))
                for chip, _, within_guarantee in group
            ]
            found = self._placer.place_on_best(claim, choices)
            if found is not None:
                chip, replicas = found
                faster = self._faster_chip(claim, chip, preferred)
                if not faster:
                    self._start_claim(claim, chip, replicas)
                    return True
                self._fleet.undo(before)
                for each in group:
                    reasons[each.chip] = explain_awaiting_faster_chip(claim, each.chip, faster)
            preferred += group
        return False

    def _faster_chip(self, placed: ClaimSnapshot, on: str, preferred: list[_CandidateChip]) -> str:
        """Return the faster, busy chip on which it would end sooner; empty if none, or none can be reserved."""
        slow = runtime_on(placed, on)
        if slow is None or self._reservation_count >= self._policy.reservations:
            return ""
        for chip, claim, within_guarantee in preferred:
            fast = runtime_on(claim, chip)
            if fast is not None and fast < slow:
                starts_at = self._reservations.starts_at(
                    claim, chip, within_guarantee=within_guarantee
                )
                if starts_at is not None and starts_at - self._at < slow - fast:
                    return chip
        return ""

    def _start_claim(
        self, claim: ClaimSnapshot, chip: str, replicas: tuple[ReplicaPlacement, ...]
    ) -> None:
        self._placements[claim.uid] = explain_placement(claim, chip, replicas, self._names)
        self._user_counts.start(claim)
        runtime = runtime_on(claim, chip)
        view = RunningClaim(
            uid=claim.uid,
            queue=claim.queue,
            shape=claim.shape,
            chip=chip,
            priority=claim.priority,
            admitted_at=self._at,
            replicas=replicas,
            ends_at=None if runtime is None else self._at + runtime,
            user=claim.user,
        )
        self.tree.start(claim.queue, chip, view.amount)
        if runtime is not None:
            self._reservations.started(view)
        if claim.uid not in self.unique_claims and claim.uid not in self._cancelled:
            # Otherwise cards are nominated for it, or it has lost its place to another once.
            self._preemptor.started(view)

    def _find_blocker(self, option: _CandidateChip) -> PendingReason:
        """Return why no room was found: reservations of other claims, or the fleet itself."""
        chip, claim, within_guarantee = option
        first = self._reservations.blocking_claim(claim, chip, within_guarantee=within_guarantee)
        if first:
            before = self._fleet.mark()
            fits = self._placer.place(claim, chip) is not None
            self._fleet.undo(before)
            if fits:
                queue = self.tree.view(self._reserving_queues[first]).name
                return explain_reserved(claim, chip, queue=queue)
        return self._blockers.explain(claim, chip)

    # -- 5: take back --

    def _plan_preemption(self, claim: ClaimSnapshot, chips: list[str]) -> PreemptionPlan | None:
        """Evict claims for a claim that is entitled to their cards."""
        if not self._policy.preemption or self._reclaims >= self._policy.reclaims_per_cycle:
            return None
        if self._is_queue_closed(claim):
            return None
        for chip in chips:
            decision = self.tree.check(claim.queue, chip, claim.equivalence_class.fewest)
            within_guarantee = bool(decision.covered_by)
            avoid = self._reservations.avoid(claim, chip, within_guarantee=within_guarantee)
            room = self._preemptor.make_room(claim, chip, avoid=avoid)
            if room is not None:
                if not room.starting:
                    self._reclaims += 1
                    self._revocations += self._preemptor.stop(room, claim)
                return room
        return None

    def _replace_starts(
        self, claim: ClaimSnapshot, others: Sequence[RunningClaim]
    ) -> PendingReason | None:
        """Decide the claim as if the others did not start, which the next cycle would evict; then the others."""
        for view in others:
            del self._placements[view.uid]
            self._cancelled.add(view.uid)
            self._preemptor.cancel(view)
            self._reservations.cancel(view)
            self._user_counts.cancel(view)
            self._fleet.free(view)
        reason = self._consider_claim(claim)
        for view in others:
            self.decide(self._starting.pop(view.uid))
        return reason

    def _nominate_claim(self, claim: ClaimSnapshot, room: PreemptionPlan) -> None:
        """Keep what it will get from other claims, and its queue's quota for it."""
        self._user_counts.nominate(claim)
        self._fleet.cap_free(room.then)
        self._nominations.append(Reservation(claim=claim.uid, nodes=room.nodes, starts_at=None))
        self.tree.nominate(claim.queue, room.chip, self._lacking_cards(claim, room.chip))

    # -- 6: reserve --

    def _reserve_nodes(self, claim: ClaimSnapshot, options: list[_CandidateChip]) -> None:
        """Reserve nodes for one of the first pending claims, and its queue's quota for them."""
        if self._reservation_count >= self._policy.reservations:
            return
        rights = {option.chip: option.within_guarantee for option in options}
        chip = self._reservations.reserve(claim, rights)
        if chip is None and not self._reserve_quota(claim):
            return
        self._reservation_count += 1
        self._reserving_queues[claim.uid] = claim.queue
        self._user_counts.nominate(claim)
        if chip is None:
            return
        if rights[chip]:
            self.tree.nominate(claim.queue, chip, self._lacking_cards(claim, chip))
        else:
            self.tree.reserve(claim.queue, chip, self._lacking_cards(claim, chip))

    def _reserve_quota(self, claim: ClaimSnapshot) -> bool:
        """Reserve the quota that its queue waits for, on the first chip that it may have one day."""
        amount = claim.equivalence_class.fewest
        for chip in claim.chips:
            decision = self.tree.check(claim.queue, chip, amount)
            shortage = decision.shortage
            if shortage is None or _no_free_cards_reason(shortage):
                continue
            if self._tree_without_usage.check(claim.queue, chip, amount).shortage is not None:
                continue
            if self._blockers.permanent_blocker(claim, chip) is not None:
                continue
            if shortage.limit is QuotaLimit.RESERVED_BY_OTHERS:
                self.tree.nominate(claim.queue, chip, self._lacking_cards(claim, chip))
            else:
                lendable = shortage.limit is QuotaLimit.NOTHING_TO_BORROW
                self.tree.reserve(
                    claim.queue, chip, self._lacking_cards(claim, chip), lendable=lendable
                )
            return True
        return False


def _group_equal_chips(options: Sequence[_CandidateChip]) -> list[list[_CandidateChip]]:
    """Return the options in the order in which they are tried, equally good ones together.

    A chip within the queue's guarantee is better than one that it has to borrow.
    """
    equal = [each for each in options if each.chip in each.claim.chips[: each.claim.equal_chips]]
    members = groupby(sorted(equal, key=_sort_borrowing_last), key=_group_key)
    return [*(list(group) for _, group in members), *([each] for each in options[len(equal) :])]


def _sort_borrowing_last(option: _CandidateChip) -> bool:
    return not option.within_guarantee


def _group_key(option: _CandidateChip) -> Hashable:
    claim = option.claim
    return option.within_guarantee, claim.shape.cards, runtime_on(claim, option.chip)


def _no_free_cards_reason(shortage: QuotaShortage) -> bool:
    """Return whether others keep what is free, but fewer are free anyway: then the fleet is the reason."""
    limited = shortage.limit in (QuotaLimit.NOTHING_TO_BORROW, QuotaLimit.RESERVED_BY_OTHERS)
    return limited and shortage.wanted > shortage.bound
