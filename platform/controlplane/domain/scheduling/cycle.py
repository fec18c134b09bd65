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
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, groupby
from typing import NamedTuple

from controlplane.domain.common.reasons import ReasonedValueError
from controlplane.domain.quotas.tree import QueueTree, QuotaLimit, QuotaShortage
from controlplane.domain.scheduling.blockers import PERMANENT_CODES, BlockerFinder
from controlplane.domain.scheduling.early_evictions import withdraw_soon_evicted_starts
from controlplane.domain.scheduling.explanations import (
    explain_awaiting_evictions,
    explain_awaiting_faster_chip,
    explain_placement,
    explain_reserved,
    explain_shortage,
    explain_unevaluated_claim,
    explain_user_limit,
)
from controlplane.domain.scheduling.node_table import EmptyFleetCapacity, NodeTable
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
    ClaimEviction,
    ClaimPlacement,
    EquivalenceClassReason,
    NoOpPlan,
    PendingClaims,
    PendingGroup,
    PendingReason,
    PendingReasonCode,
    Reservation,
    SchedulerState,
    SchedulingPlan,
    SchedulingPolicy,
)
from controlplane.domain.scheduling.preemption import PreemptionPlan, Preemptor
from controlplane.domain.scheduling.reservations import ReservationPlanner
from controlplane.domain.scheduling.runtime_estimates import expected_runtime_on_chip
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    EquivalenceClass,
    ReplicaPlacement,
    RunningClaim,
    SchedulingSnapshot,
    shrink_claim_to_amount,
)
from controlplane.domain.scheduling.typical_requests import typical_requests

#: Reasons of one claim alone: others of its class may be placed.
_PER_CLAIM_CODES = frozenset(
    {
        PendingReasonCode.AWAITING_EVICTIONS,
        PendingReasonCode.AWAITING_FASTER_CHIP,
        PendingReasonCode.USER_LIMIT,
    }
)
#: While a round of attempts goes on, the part of them for the first claims in order.
_IN_ORDER = 0.5
#: How long the plan of a no-op cycle is valid.
NO_OP_PLAN_VALID_FOR = timedelta(seconds=1)
#: Reasons for which neither eviction nor a reservation helps on a chip.
_HOPELESS_CODES = PERMANENT_CODES | {PendingReasonCode.AWAITING_FASTER_CHIP}


def plan_incrementally(
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
    if moved or state.deferred or decided.state.deferred or decided.has_unevaluated_claims:
        return decided
    no_op = NoOpPlan(snapshot, policy, at, decided.class_reasons)
    return replace(decided, state=replace(decided.state, no_op=no_op))


def _reasons_for_new_claims(
    last: NoOpPlan, snapshot: SchedulingSnapshot, policy: SchedulingPolicy, at: datetime
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
    return withdraw_soon_evicted_starts(
        decided,
        snapshot,
        at,
        next_plan=lambda after, before: _plan_once(after, policy, at, before.state),
    )


def _plan_once(
    snapshot: SchedulingSnapshot, policy: SchedulingPolicy, at: datetime, state: SchedulerState
) -> SchedulingPlan:
    untried, deferred = state.untried, state.deferred
    accounts, decisions = build_cycle_accounts(snapshot, policy, at), Decisions()
    now = snapshot.claims
    if deferred:
        now = tuple(claim for claim in snapshot.claims if claim.uid not in deferred)
    order = claim_order(now, accounts, decisions)
    _decide_in_order(order, accounts, decisions, part=_IN_ORDER if untried else 1)
    if untried:
        _decide_in_order(order.round_robin(untried), accounts, decisions)
    lines = order.remaining()
    if deferred:
        later = tuple(claim for claim in snapshot.claims if claim.uid in deferred)
        last = claim_order(later, accounts, decisions)
        _decide_in_order(last, accounts, decisions)
        lines = chain(lines, last.remaining())
    left: set[SearchKey] = set()
    for line in lines:
        left.update(key for key in line.search_keys() if key not in decisions.class_reasons)
        _leave_queue_pending(line, accounts, decisions)
    # Whoever is left because enough were placed needs no round: those in front go first again.
    begins = not untried and _attempts(accounts, decisions) >= policy.attempts_per_cycle
    return SchedulingPlan(
        state=SchedulerState(untried=frozenset(left if begins else left & untried)),
        placements=tuple(decisions.placements.values()),
        pending=PendingClaims(decisions.pending),
        revocations=tuple(decisions.revocations),
        reservations=(*decisions.nominations, *accounts.reservations.reserved),
        class_reasons=decisions.class_reasons,
    )


@dataclass(slots=True)
class Decisions:
    """What a cycle has decided so far; only ``decide`` and what it calls to record a result add to it."""

    #: By claim.
    placements: dict[str, ClaimPlacement] = field(default_factory=dict)
    #: Claims that were placed, and that a claim within a guarantee may still keep from starting.
    starting: dict[str, ClaimSnapshot] = field(default_factory=dict)
    #: Claims that have lost their place to such a claim.
    cancelled: set[str] = field(default_factory=set)
    pending: list[PendingGroup] = field(default_factory=list)
    revocations: list[ClaimEviction] = field(default_factory=list)
    nominations: list[Reservation] = field(default_factory=list)
    class_reasons: dict[EquivalenceClass, EquivalenceClassReason] = field(default_factory=dict)
    #: Queues of the claims with reservations, by claim.
    reserving_queues: dict[str, str] = field(default_factory=dict)
    #: Claims that others are evicted for.
    reclaims: int = 0
    #: Claims that were decided without a search.
    unsearched: int = 0


def _attempts(accounts: CycleAccounts, decisions: Decisions) -> int:
    """Searches, and claims for which none was made: to explain why they are pending takes as long.

    Searches for reservations have a bound of their own.
    """
    return accounts.placer.searches - accounts.reservations.searches + decisions.unsearched


def _decide_in_order(
    claims: Iterable[ClaimSnapshot],
    accounts: CycleAccounts,
    decisions: Decisions,
    *,
    part: float = 1,
) -> None:
    """Decide one by one until that part of the attempts is spent, or enough are placed; at least for one."""
    policy = accounts.policy
    most = policy.attempts_per_cycle * part
    if most and len(decisions.placements) < policy.placements_per_cycle:
        for claim in claims:
            decide_claim(claim, accounts, decisions)
            if (
                len(decisions.placements) >= policy.placements_per_cycle
                or _attempts(accounts, decisions) >= most
            ):
                break


def decide_claim(claim: ClaimSnapshot, accounts: CycleAccounts, decisions: Decisions) -> bool:
    """Place the claim or record why it is pending; return whether it was placed."""
    before = _attempts(accounts, decisions)
    reason = _try_to_place_claim(claim, accounts, decisions)
    decisions.unsearched += _attempts(accounts, decisions) == before
    if reason is None:
        return True
    decisions.pending.append(PendingGroup(reason, (claim,)))
    if reason.code not in _PER_CLAIM_CODES and claim.uid not in accounts.unique_claims:
        decisions.class_reasons[claim.equivalence_class] = EquivalenceClassReason(
            reason, claim.position
        )
    return False


def _try_to_place_claim(
    claim: ClaimSnapshot, accounts: CycleAccounts, decisions: Decisions
) -> PendingReason | None:
    """Take steps 3 to 6 for one claim; return None if it was placed.

    Its nominated cards are free for it during the steps, and are nominated again if it stays pending.
    """
    if not claim.chips:
        raise ReasonedValueError(
            "claim.chips.missing", "claim {claim} has no acceptable chip", claim=claim.uid
        )
    limit = accounts.user_counts.limit(claim)
    if limit is not None and not _is_queue_closed(claim, accounts):
        return explain_user_limit(limit)
    before = accounts.fleet.mark()
    accounts.fleet.release_nominated_cards(claim.uid)
    _charge_nominated(claim, accounts, -1)
    options, reasons = find_admissible_chips(claim, accounts)
    may_reserve = len(decisions.reserving_queues) < accounts.policy.reservations
    placed, slower = find_placement(options, accounts, may_reserve=may_reserve)
    if placed is not None:
        _record_start(placed, accounts, decisions)
        decisions.starting[claim.uid] = claim
        return None
    if stopping := accounts.stopping.get(claim.uid):
        room: PreemptionPlan | None = accounts.preemptor.awaited(claim, stopping)
        reasons |= slower
    else:
        blockers = {each.chip: find_blocker(each, accounts, decisions) for each in options}
        reasons = blockers | reasons | slower
        usable = [chip for chip in claim.chips if reasons[chip].code not in _HOPELESS_CODES]
        room = None
        if decisions.reclaims < accounts.policy.reclaims_per_cycle:
            room = find_evictions(claim, usable, accounts)
        if room is not None and room.starting:
            accounts.fleet.undo(before)
            _charge_nominated(claim, accounts, 1)
            return _replace_starts(claim, room.starting, accounts, decisions)
        if room is not None:
            decisions.reclaims += 1
            decisions.revocations += accounts.preemptor.stop(room, claim)
        elif may_reserve and reserve_nodes(
            claim, [each for each in options if each.chip in usable], accounts
        ):
            decisions.reserving_queues[claim.uid] = claim.queue
    accounts.fleet.undo(before)
    _charge_nominated(claim, accounts, 1)
    if room is not None:
        _record_nomination(claim, room, accounts, decisions)
        return explain_awaiting_evictions(room.chip, room.victims)
    awaiting = (
        each for each in reasons.values() if each.code is PendingReasonCode.AWAITING_FASTER_CHIP
    )
    # Otherwise the reason of the chip that it prefers of those that may ever do.
    useful = (chip for chip in claim.chips if reasons[chip].code not in _HOPELESS_CODES)
    return next(awaiting, reasons[next(useful, claim.chips[0])])


# -- 1: account --


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleAccounts:
    """What the steps of a cycle count on: fleet, queue tree and claims of one snapshot.

    ``fleet``, ``tree``, ``preemptor``, ``reservations`` and ``user_counts`` change as claims are decided.
    """

    policy: SchedulingPolicy
    at: datetime
    fleet: NodeTable
    placer: PlacementFinder
    tree: QueueTree
    #: The tree as if no claim held anything.
    tree_without_usage: QueueTree
    blockers: BlockerFinder
    preemptor: Preemptor
    reservations: ReservationPlanner
    user_counts: UserClaimCounts
    node_names: Mapping[str, str]
    nominated_cards: Mapping[str, Counter[str]]
    #: Claims that are being evicted, by the pending claim that they are evicted for.
    stopping: Mapping[str, Sequence[RunningClaim]]
    #: Claims with nominated cards: what holds for others of their class does not hold for them.
    unique_claims: frozenset[str]


def build_cycle_accounts(
    snapshot: SchedulingSnapshot, policy: SchedulingPolicy, at: datetime
) -> CycleAccounts:
    """Count what each queue holds, up the tree, and what is free in the fleet."""
    fleet = NodeTable(snapshot)
    placer = PlacementFinder(fleet, typical_requests(snapshot))
    capacity = EmptyFleetCapacity(fleet)
    nominated_cards = find_nominated_cards(snapshot)
    tree = queue_tree(snapshot, nominated_cards)
    running = snapshot.running
    stopping: dict[str, list[RunningClaim]] = {}
    for view in running:
        if view.revoked_for:
            stopping.setdefault(view.revoked_for, []).append(view)
    return CycleAccounts(
        policy=policy,
        at=at,
        fleet=fleet,
        placer=placer,
        tree=tree,
        tree_without_usage=tree.without_usage(),
        blockers=BlockerFinder(fleet, placer, capacity),
        preemptor=Preemptor(fleet=fleet, placer=placer, tree=tree, running=running, at=at),
        reservations=ReservationPlanner(
            fleet=fleet,
            placer=placer,
            capacity=capacity,
            running=running,
            at=at,
            backfill=policy.backfill,
        ),
        user_counts=UserClaimCounts(snapshot.queues, running),
        node_names={node.uid: node.name for node in snapshot.nodes},
        nominated_cards=nominated_cards,
        stopping=stopping,
        unique_claims=frozenset({*nominated_cards, *fleet.nominated, *stopping}),
    )


def _charge_nominated(claim: ClaimSnapshot, accounts: CycleAccounts, sign: int) -> None:
    """Count the nominated cards for its queue until the claim is decided, and again if it stays pending."""
    for chip, cards in accounts.nominated_cards.get(claim.uid, {}).items():
        accounts.tree.start(claim.queue, chip, sign * cards)


def _lacking_cards(claim: ClaimSnapshot, chip: str, accounts: CycleAccounts) -> int:
    """Thousandths of cards that it needs to start beyond those nominated for it."""
    nominated_cards = accounts.nominated_cards.get(claim.uid, Counter())[chip]
    return max(0, claim.shape.min_card_thousandths - nominated_cards)


# -- 2: order --


def claim_order(
    claims: Sequence[ClaimSnapshot], accounts: CycleAccounts, decisions: Decisions
) -> ClaimOrder:
    """Return those claims in the order in which they are decided, which follows admissions."""

    def drop_refused(line: PendingQueue) -> None:
        """Leave the next claims pending for as long as one of their class was; they leave the queue."""
        while (
            line
            and (equivalence_class := line.equivalence_class) is not None
            and equivalence_class in decisions.class_reasons
        ):
            reason = decisions.class_reasons[equivalence_class].reason
            decisions.pending.append(PendingGroup(reason, line.drop()))

    return ClaimOrder(
        claims,
        accounts.tree,
        drop_refused=drop_refused,
        nominated_cards=accounts.nominated_cards,
        unique=accounts.unique_claims,
    )


def _leave_queue_pending(line: PendingQueue, accounts: CycleAccounts, decisions: Decisions) -> None:
    """Leave the whole queue pending, for the reason of its classes or because it was not evaluated."""
    spent = explain_unevaluated_claim(len(decisions.placements), _attempts(accounts, decisions))
    while line:
        known = line.equivalence_class and decisions.class_reasons.get(line.equivalence_class)
        decisions.pending.append(PendingGroup(known.reason if known else spent, line.drop()))


# -- 3: check the queue --


class _CandidateChip(NamedTuple):
    """A chip on which the queue may have the claim."""

    chip: str
    #: With no more replicas than the queue may have.
    claim: ClaimSnapshot
    #: It is within a guarantee.
    within_guarantee: bool


def find_admissible_chips(
    claim: ClaimSnapshot, accounts: CycleAccounts
) -> tuple[list[_CandidateChip], dict[str, PendingReason]]:
    """Return the chips that its queue may have it on, preferred first, and why not for each other chip."""
    options: list[_CandidateChip] = []
    reasons: dict[str, PendingReason] = {}
    equivalence_class = claim.equivalence_class
    for chip in claim.chips:
        decision = accounts.tree.check(claim.queue, chip, equivalence_class.fewest)
        if decision.shortage is None or _is_blocked_by_fleet(decision.shortage):
            narrowed = claim
            if equivalence_class.most > equivalence_class.fewest:
                most = accounts.tree.max_admissible(claim.queue, chip, equivalence_class.most)
                narrowed = shrink_claim_to_amount(claim, most)
            options.append(_CandidateChip(chip, narrowed, bool(decision.covered_by)))
        else:
            reasons[chip] = explain_shortage(decision.shortage)
    return options, reasons


def _is_queue_closed(claim: ClaimSnapshot, accounts: CycleAccounts) -> bool:
    amount = claim.equivalence_class.fewest
    shortage = accounts.tree.check(claim.queue, claim.chips[0], amount).shortage
    return shortage is not None and shortage.limit is QuotaLimit.CLOSED


# -- 4: place --


class _FoundPlacement(NamedTuple):
    #: With as many replicas as were placed at most.
    claim: ClaimSnapshot
    chip: str
    replicas: tuple[ReplicaPlacement, ...]


def find_placement(
    options: Sequence[_CandidateChip], accounts: CycleAccounts, *, may_reserve: bool
) -> tuple[_FoundPlacement | None, dict[str, PendingReason]]:
    """Find room on the first chip with room; among equally good chips on the one where it fits best.

    Not if the claim ends sooner when it waits for a preferred chip.

    :param may_reserve: whether the claim could reserve such a chip.
    :return: the placement, whose cards are allocated in ``accounts.fleet``, and the chips that are too slow.
    """
    slower: dict[str, PendingReason] = {}
    preferred: list[_CandidateChip] = []
    for group in _group_equal_chips(options):
        claim = group[0].claim
        before = accounts.fleet.mark()
        choices = [
            (chip, accounts.reservations.avoid(claim, chip, within_guarantee=within_guarantee))
            for chip, _, within_guarantee in group
        ]
        found = accounts.placer.place_on_best(claim, choices)
        if found is not None:
            chip, replicas = found
            faster = _faster_chip(claim, chip, preferred, accounts) if may_reserve else ""
            if not faster:
                return _FoundPlacement(claim, chip, replicas), slower
            accounts.fleet.undo(before)
            for each in group:
                slower[each.chip] = explain_awaiting_faster_chip(claim, each.chip, faster)
        preferred += group
    return None, slower


def _faster_chip(
    placed: ClaimSnapshot, on: str, preferred: Sequence[_CandidateChip], accounts: CycleAccounts
) -> str:
    """Return the faster, busy chip on which it would end sooner; empty if none, or none can be reserved."""
    slow = expected_runtime_on_chip(placed, on)
    if slow is None:
        return ""
    for chip, claim, within_guarantee in preferred:
        fast = expected_runtime_on_chip(claim, chip)
        if fast is not None and fast < slow:
            starts_at = accounts.reservations.starts_at(
                claim, chip, within_guarantee=within_guarantee
            )
            if starts_at is not None and starts_at - accounts.at < slow - fast:
                return chip
    return ""


def _record_start(placed: _FoundPlacement, accounts: CycleAccounts, decisions: Decisions) -> None:
    claim, chip, replicas = placed
    decisions.placements[claim.uid] = explain_placement(claim, chip, replicas, accounts.node_names)
    accounts.user_counts.start(claim)
    runtime = expected_runtime_on_chip(claim, chip)
    view = RunningClaim(
        uid=claim.uid,
        queue=claim.queue,
        shape=claim.shape,
        chip=chip,
        priority=claim.priority,
        admitted_at=accounts.at,
        replicas=replicas,
        ends_at=None if runtime is None else accounts.at + runtime,
        user=claim.user,
    )
    accounts.tree.start(claim.queue, chip, view.amount)
    if runtime is not None:
        accounts.reservations.started(view)
    if claim.uid not in accounts.unique_claims and claim.uid not in decisions.cancelled:
        # Otherwise cards are nominated for it, or it has lost its place to another once.
        accounts.preemptor.started(view)


def find_blocker(
    option: _CandidateChip, accounts: CycleAccounts, decisions: Decisions
) -> PendingReason:
    """Return why no room was found: reservations of other claims, or the fleet itself."""
    chip, claim, within_guarantee = option
    first = accounts.reservations.blocking_claim(claim, chip, within_guarantee=within_guarantee)
    if first:
        before = accounts.fleet.mark()
        fits = accounts.placer.place(claim, chip) is not None
        accounts.fleet.undo(before)
        if fits:
            queue = accounts.tree.view(decisions.reserving_queues[first]).name
            return explain_reserved(claim, chip, queue=queue)
    return accounts.blockers.explain(claim, chip)


# -- 5: preempt --


def find_evictions(
    claim: ClaimSnapshot, chips: Sequence[str], accounts: CycleAccounts
) -> PreemptionPlan | None:
    """Find claims to evict for a claim that is entitled to their cards; None if there are none."""
    if not accounts.policy.preemption or _is_queue_closed(claim, accounts):
        return None
    for chip in chips:
        decision = accounts.tree.check(claim.queue, chip, claim.equivalence_class.fewest)
        within_guarantee = bool(decision.covered_by)
        avoid = accounts.reservations.avoid(claim, chip, within_guarantee=within_guarantee)
        room = accounts.preemptor.plan_preemption(claim, chip, avoid=avoid)
        if room is not None:
            return room
    return None


def _replace_starts(
    claim: ClaimSnapshot,
    others: Sequence[RunningClaim],
    accounts: CycleAccounts,
    decisions: Decisions,
) -> PendingReason | None:
    """Decide the claim as if the others did not start, which the next cycle would evict; then the others."""
    for view in others:
        del decisions.placements[view.uid]
        decisions.cancelled.add(view.uid)
        accounts.preemptor.cancel(view)
        accounts.reservations.cancel(view)
        accounts.user_counts.cancel(view)
        accounts.fleet.free(view)
    reason = _try_to_place_claim(claim, accounts, decisions)
    for view in others:
        decide_claim(decisions.starting.pop(view.uid), accounts, decisions)
    return reason


def _record_nomination(
    claim: ClaimSnapshot, room: PreemptionPlan, accounts: CycleAccounts, decisions: Decisions
) -> None:
    """Keep what it will get from other claims, and its queue's quota for it."""
    accounts.user_counts.nominate(claim)
    accounts.fleet.limit_free_capacity(room.then)
    decisions.nominations.append(Reservation(claim=claim.uid, nodes=room.nodes, starts_at=None))
    accounts.tree.nominate(claim.queue, room.chip, _lacking_cards(claim, room.chip, accounts))


# -- 6: reserve --


def reserve_nodes(
    claim: ClaimSnapshot, options: Sequence[_CandidateChip], accounts: CycleAccounts
) -> bool:
    """Reserve nodes for one of the first pending claims, and its queue's quota for them.

    Where no nodes will ever be free, reserve the quota alone. Return whether anything was reserved.
    """
    rights = {option.chip: option.within_guarantee for option in options}
    chip = accounts.reservations.reserve(claim, rights)
    if chip is None and not _reserve_quota(claim, accounts):
        return False
    accounts.user_counts.nominate(claim)
    if chip is not None:
        tree = accounts.tree
        hold = tree.nominate if rights[chip] else tree.reserve
        hold(claim.queue, chip, _lacking_cards(claim, chip, accounts))
    return True


def _reserve_quota(claim: ClaimSnapshot, accounts: CycleAccounts) -> bool:
    """Reserve the quota that its queue waits for, on the first chip that it may have one day."""
    tree, amount = accounts.tree, claim.equivalence_class.fewest
    for chip in claim.chips:
        shortage = tree.check(claim.queue, chip, amount).shortage
        if shortage is None or _is_blocked_by_fleet(shortage):
            continue
        if accounts.tree_without_usage.check(claim.queue, chip, amount).shortage is not None:
            continue
        if accounts.blockers.permanent_blocker(claim, chip) is not None:
            continue
        lacking = _lacking_cards(claim, chip, accounts)
        if shortage.limit is QuotaLimit.RESERVED_BY_OTHERS:
            tree.nominate(claim.queue, chip, lacking)
        else:
            lendable = shortage.limit is QuotaLimit.NOTHING_TO_BORROW
            tree.reserve(claim.queue, chip, lacking, lendable=lendable)
        return True
    return False


def _group_equal_chips(options: Sequence[_CandidateChip]) -> list[list[_CandidateChip]]:
    """Return the options in the order in which they are tried, equally good ones together.

    A chip within the queue's guarantee is better than one that it has to borrow.
    """
    equal = [each for each in options if each.chip in each.claim.chips[: each.claim.equal_chips]]
    members = groupby(sorted(equal, key=_borrowing_last_sort_key), key=_equal_chip_key)
    return [*(list(group) for _, group in members), *([each] for each in options[len(equal) :])]


def _borrowing_last_sort_key(option: _CandidateChip) -> bool:
    return not option.within_guarantee


def _equal_chip_key(option: _CandidateChip) -> Hashable:
    claim = option.claim
    return option.within_guarantee, claim.shape.cards, expected_runtime_on_chip(claim, option.chip)


def _is_blocked_by_fleet(shortage: QuotaShortage) -> bool:
    """Return whether others keep what is free, but fewer are free anyway: then the fleet is the reason."""
    limited = shortage.limit in (QuotaLimit.NOTHING_TO_BORROW, QuotaLimit.RESERVED_BY_OTHERS)
    return limited and shortage.wanted > shortage.bound
