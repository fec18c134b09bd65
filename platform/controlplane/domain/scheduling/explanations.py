"""Reasons and their messages for placements, evictions and pending claims.

Users read the message; programs read its code and parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controlplane.domain.common.reasons import Reason
from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.quotas.tree import QuotaLimit, QuotaShortage
from controlplane.domain.scheduling.per_user_limits import UserLimitReached
from controlplane.domain.scheduling.plans import (
    ClaimEviction,
    ClaimPlacement,
    PendingReason,
    PendingReasonCode,
    cards_of_replicas,
)
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, ReplicaPlacement, RunningClaim

#: What a bound on all chips together is a bound on.
ANY_CHIP = Reason("claim.chip.any", "cards of any chip")


def explain_placement(
    claim: ClaimSnapshot,
    chip: str,
    replicas: tuple[ReplicaPlacement, ...],
    names: Mapping[str, str],
) -> ClaimPlacement:
    """:param names: of the nodes, by uid."""
    nodes = sorted({names[replica.node] for replica in replicas})
    shape = claim.shape.describe()
    if len(nodes) == 1:
        reason = Reason(
            "claim.placement.one_node",
            "{shape} of {chip} on {node}, which leaves the fewest unusable cards",
            shape=shape,
            chip=chip,
            node=nodes[0],
        )
    else:
        some = ", ".join(nodes[:4]) + ("…" if len(nodes) > 4 else "")
        reason = Reason(
            "claim.placement.several_nodes",
            "{shape} of {chip} on {count} nodes ({nodes}), the smallest network "
            "domain with enough free capacity",
            shape=shape,
            chip=chip,
            count=len(nodes),
            nodes=some,
        )
    return ClaimPlacement(
        claim=claim.uid,
        chip=chip,
        replicas=replicas,
        reason=reason,
        numbers={
            "nodes": len(nodes),
            "cards": cards_of_replicas(replicas),
            "wanted": claim.shape.cards,
        },
    )


def explain_shortage(shortage: QuotaShortage) -> PendingReason:
    """Return why the queue, or one of its ancestors, refuses the claim.

    :param shortage: in thousandths of cards.
    """
    queue, kind = shortage.queue, shortage.chip or ANY_CHIP
    wanted, used = _thousandths_as_cards(shortage.wanted), _thousandths_as_cards(shortage.used)
    bound, reserved = (
        _thousandths_as_cards(shortage.bound),
        _thousandths_as_cards(shortage.reserved),
    )
    lendable = _thousandths_as_cards(shortage.lendable)
    numbers = {"wanted": wanted, "used": used}
    match shortage.limit:
        case QuotaLimit.CLOSED:
            return PendingReason.of(
                PendingReasonCode.QUEUE_CLOSED,
                "queue.state.closed",
                "queue {queue} is closed; it admits no claims until it is opened",
                queue=queue,
            )
        case QuotaLimit.CAP if shortage.reserved:
            return PendingReason.of(
                PendingReasonCode.QUEUE_CAP,
                "queue.cap.reached_with_reservation",
                "needs {needed} × {chip}; queue {queue} uses {used} of its cap of {cap}, "
                "and {reserved} are reserved for other claims",
                needed=wanted,
                chip=kind,
                queue=queue,
                used=used,
                cap=bound,
                reserved=reserved,
                numbers={**numbers, "cap": bound, "kept": reserved},
            )
        case QuotaLimit.CAP:
            return PendingReason.of(
                PendingReasonCode.QUEUE_CAP,
                "queue.cap.reached",
                "needs {needed} × {chip}; queue {queue} uses {used} of its cap of {cap}",
                needed=wanted,
                chip=kind,
                queue=queue,
                used=used,
                cap=bound,
                numbers={**numbers, "cap": bound},
            )
        case QuotaLimit.DOES_NOT_BORROW:
            return PendingReason(
                code=PendingReasonCode.NO_BORROWING,
                reason=Reason(
                    "queue.guarantee.reached_with_reservation",
                    "needs {needed} × {chip}; queue {queue} uses {used} of its guaranteed "
                    "{guaranteed}, {reserved} are reserved for other claims, and it does not "
                    "borrow",
                    needed=wanted,
                    chip=kind,
                    queue=queue,
                    used=used,
                    guaranteed=bound,
                    reserved=reserved,
                )
                if reserved
                else Reason(
                    "queue.guarantee.reached",
                    "needs {needed} × {chip}; queue {queue} uses {used} of its guaranteed "
                    "{guaranteed} and does not borrow",
                    needed=wanted,
                    chip=kind,
                    queue=queue,
                    used=used,
                    guaranteed=bound,
                ),
                numbers={
                    **numbers,
                    "guaranteed": bound,
                    **({"kept": reserved} if reserved else {}),
                },
            )
        case QuotaLimit.NOTHING_TO_BORROW:
            return PendingReason.of(
                PendingReasonCode.NO_BORROWING,
                "queue.borrowing.insufficient",
                "needs {needed} × {chip}, more than the guaranteed quota of queue "
                "{queue}; {free} are free, of which {lendable} may be borrowed",
                needed=wanted,
                chip=kind,
                queue=queue,
                free=bound,
                lendable=lendable,
                numbers={**numbers, "free": bound, "lendable": lendable},
            )
        case QuotaLimit.RESERVED_BY_OTHERS:
            reserved = _thousandths_as_cards(shortage.bound - shortage.lendable)
            return PendingReason.of(
                PendingReasonCode.NO_BORROWING,
                "queue.borrowing.reserved_by_others",
                "needs {needed} × {chip}; {free} are free, but {reserved} of them are "
                "reserved by other queues",
                needed=wanted,
                chip=kind,
                free=bound,
                reserved=reserved,
                numbers={**numbers, "free": bound, "kept": reserved},
            )


def _thousandths_as_cards(amount: int) -> float:
    """A whole number of cards as one."""
    return amount / WHOLE_CARD if amount % WHOLE_CARD else amount // WHOLE_CARD


def explain_user_limit(limit: UserLimitReached) -> PendingReason:
    """Return why a queue refuses one more claim of the same user."""
    user, queue, bound, held = limit.user, limit.queue, limit.bound, limit.held
    numbers = {"held": held, "limit": bound}
    if limit.first:
        return PendingReason.of(
            PendingReasonCode.USER_LIMIT,
            "claim.user_limit.others_first",
            "{user} has {admitted} of at most {limit} admitted claims in queue "
            "{queue}; other claims of {user} that come first: {preceding}",
            user=user,
            admitted=held,
            limit=bound,
            queue=queue,
            preceding=limit.first,
            numbers={**numbers, "first": limit.first},
        )
    return PendingReason.of(
        PendingReasonCode.USER_LIMIT,
        "claim.user_limit.reached",
        "{user} has {admitted} of at most {limit} admitted claims in queue {queue}",
        user=user,
        admitted=held,
        limit=bound,
        queue=queue,
        numbers=numbers,
    )


def explain_reserved(claim: ClaimSnapshot, chip: str, *, queue: str) -> PendingReason:
    """:param queue: name of the queue whose claim has the reservation."""
    return PendingReason.of(
        PendingReasonCode.RESERVED,
        "claim.no_fit.reserved",
        "needs {shape} of {chip}; the free capacity is reserved for a claim of "
        "queue {queue} that comes first",
        shape=claim.shape.describe(),
        chip=chip,
        queue=queue,
        numbers={"wanted": claim.shape.cards},
    )


def explain_awaiting_faster_chip(claim: ClaimSnapshot, chip: str, faster: str) -> PendingReason:
    """:param chip: that it could have now."""
    return PendingReason.of(
        PendingReasonCode.AWAITING_FASTER_CHIP,
        "claim.pending.faster_chip",
        "needs {shape}; {chip} has free capacity, but waiting for {faster_chip} "
        "gives an earlier completion",
        shape=claim.shape.describe(),
        chip=chip,
        faster_chip=faster,
        numbers={"wanted": claim.shape.cards},
    )


def explain_awaiting_evictions(chip: str, running: Iterable[RunningClaim]) -> PendingReason:
    """:param running: claims that are being evicted."""
    stopping = list(running)
    cards = sum(cards_of_replicas(view.replicas) for view in stopping)
    return PendingReason.of(
        PendingReasonCode.AWAITING_EVICTIONS,
        "claim.pending.evictions",
        "waiting for {cards} × {chip} from claims that are being evicted: {claims}",
        cards=cards,
        chip=chip,
        claims=len(stopping),
        numbers={"cards": cards, "claims": len(stopping)},
    )


def explain_reclaim(
    victim: RunningClaim, claim: ClaimSnapshot, *, queue: str, guaranteed: int, owner: str
) -> ClaimEviction:
    """:param queue: name of the victim's queue, which is guaranteed so many; ``owner``: that of the claim's."""
    return ClaimEviction(
        claim=victim.uid,
        beneficiary=claim.uid,
        reason=Reason(
            "claim.eviction.reclaimed",
            "queue {queue} uses more than its guaranteed {guaranteed} × {chip}; "
            "queue {reclaiming_queue} reclaims its guaranteed quota",
            queue=queue,
            guaranteed=guaranteed,
            chip=victim.chip,
            reclaiming_queue=owner,
        ),
    )


def explain_preemption(victim: RunningClaim, claim: ClaimSnapshot) -> ClaimEviction:
    return ClaimEviction(
        claim=victim.uid,
        beneficiary=claim.uid,
        reason=Reason(
            "claim.eviction.preempted",
            "preempted by a claim of priority {preemptor_priority} in the same "
            "queue; the priority of this claim is {priority}",
            preemptor_priority=claim.priority,
            priority=victim.priority,
        ),
    )


def explain_unevaluated_claim(placed: int, looked_at: int) -> PendingReason:
    return PendingReason.of(
        PendingReasonCode.NOT_EVALUATED,
        "claim.pending.cycle_budget_exhausted",
        "not evaluated in this scheduling cycle; claims placed before it: "
        "{placed}, placement attempts: {attempts}",
        placed=placed,
        attempts=looked_at,
        numbers={"placed": placed, "looked_at": looked_at},
    )
