"""Reasons and their messages for placements, evictions and pending claims.

People read the message; programs read its code and numbers. Messages are few and fixed, as pages translate them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.quotas.tree import QuotaLimit, QuotaShortage
from controlplane.domain.scheduling.per_user_limits import UserLimitReached
from controlplane.domain.scheduling.plans import (
    ClaimPlacement,
    PendingCode,
    PendingReason,
    Revocation,
    cards_of_replicas,
)
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, ReplicaPlacement, RunningClaim

#: What a bound on all chips together is a bound on.
ANY_CHIP = "cards of any chip"


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
        reason = (
            f"{shape} of {chip} on {nodes[0]}, where it leaves the fewest cards that nobody can use"
        )
    else:
        some = ", ".join(nodes[:4]) + ("…" if len(nodes) > 4 else "")
        reason = (
            f"{shape} of {chip} on {len(nodes)} nodes ({some}), the smallest part of the network with room "
            f"for all of it"
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
    wanted, used = _format_in_cards(shortage.wanted), _format_in_cards(shortage.used)
    bound, reserved = _format_in_cards(shortage.bound), _format_in_cards(shortage.reserved)
    lendable = _format_in_cards(shortage.lendable)
    numbers = {"wanted": wanted, "used": used}
    match shortage.limit:
        case QuotaLimit.CLOSED:
            return PendingReason(
                code=PendingCode.QUEUE_CLOSED,
                reason=f"queue {queue} is closed; it admits nothing until it is opened",
            )
        case QuotaLimit.CAP if shortage.reserved:
            return PendingReason(
                code=PendingCode.QUEUE_CAP,
                reason=(
                    f"needs {wanted} × {kind}; queue {queue} holds {used} of at most {bound} and "
                    f"keeps {reserved} for others"
                ),
                numbers={**numbers, "cap": bound, "kept": reserved},
            )
        case QuotaLimit.CAP:
            return PendingReason(
                code=PendingCode.QUEUE_CAP,
                reason=f"needs {wanted} × {kind}; queue {queue} holds {used} of at most {bound}",
                numbers={**numbers, "cap": bound},
            )
        case QuotaLimit.DOES_NOT_BORROW:
            return PendingReason(
                code=PendingCode.NO_BORROWING,
                reason=(
                    f"needs {wanted} × {kind}; queue {queue} holds {used} of the {bound} that it is "
                    f"guaranteed, keeps {reserved} for others and borrows nothing"
                )
                if reserved
                else (
                    f"needs {wanted} × {kind}; queue {queue} holds {used} of the {bound} that it "
                    f"is guaranteed, and borrows nothing"
                ),
                numbers={
                    **numbers,
                    "guaranteed": bound,
                    **({"kept": reserved} if reserved else {}),
                },
            )
        case QuotaLimit.NOTHING_TO_BORROW:
            return PendingReason(
                code=PendingCode.NO_BORROWING,
                reason=(
                    f"needs {wanted} × {kind}, more than queue {queue} is guaranteed; {bound} are "
                    f"free, of which {lendable} may be borrowed"
                ),
                numbers={**numbers, "free": bound, "lendable": lendable},
            )
        case QuotaLimit.RESERVED_BY_OTHERS:
            reserved = _format_in_cards(shortage.bound - shortage.lendable)
            return PendingReason(
                code=PendingCode.NO_BORROWING,
                reason=(
                    f"needs {wanted} × {kind}; {bound} are free, but other queues keep {reserved} of them"
                ),
                numbers={**numbers, "free": bound, "kept": reserved},
            )


def _format_in_cards(amount: int) -> float:
    """A whole number of cards as one."""
    return amount / WHOLE_CARD if amount % WHOLE_CARD else amount // WHOLE_CARD


def explain_user_limit(limit: UserLimitReached) -> PendingReason:
    """Return why a queue refuses one more claim of the same user."""
    user, queue, bound, held = limit.user, limit.queue, limit.bound, limit.held
    numbers = {"held": held, "limit": bound}
    if limit.first:
        return PendingReason(
            code=PendingCode.USER_LIMIT,
            reason=(
                f"{user} holds {held} of at most {bound} claims of queue {queue}, and others of "
                f"{user} come first: {limit.first}"
            ),
            numbers={**numbers, "first": limit.first},
        )
    return PendingReason(
        code=PendingCode.USER_LIMIT,
        reason=f"{user} holds {held} of at most {bound} claims of queue {queue}",
        numbers=numbers,
    )


def explain_reserved(claim: ClaimSnapshot, chip: str, *, queue: str) -> PendingReason:
    """:param queue: name of the queue whose claim has the reservation."""
    return PendingReason(
        code=PendingCode.RESERVED,
        reason=(
            f"needs {claim.shape.describe()} of {chip}; there is room, but it is kept for a claim "
            f"of queue {queue} that comes first"
        ),
        numbers={"wanted": claim.shape.cards},
    )


def explain_awaiting_faster_chip(claim: ClaimSnapshot, chip: str, faster: str) -> PendingReason:
    """:param chip: that it could have now."""
    return PendingReason(
        code=PendingCode.AWAITING_FASTER_CHIP,
        reason=(
            f"needs {claim.shape.describe()}; {chip} has room, but it ends sooner if it waits for {faster}"
        ),
        numbers={"wanted": claim.shape.cards},
    )


def explain_awaiting_evictions(chip: str, running: Iterable[RunningClaim]) -> PendingReason:
    """:param running: claims that are being evicted."""
    stopping = list(running)
    cards = sum(cards_of_replicas(view.replicas) for view in stopping)
    return PendingReason(
        code=PendingCode.AWAITING_EVICTIONS,
        reason=f"awaits {cards} × {chip} of claims that were told to stop for it: {len(stopping)}",
        numbers={"cards": cards, "claims": len(stopping)},
    )


def explain_reclaim(
    victim: RunningClaim, claim: ClaimSnapshot, *, queue: str, guaranteed: int, owner: str
) -> Revocation:
    """:param queue: name of the victim's queue, which is guaranteed so many; ``owner``: that of the claim's."""
    return Revocation(
        claim=victim.uid,
        beneficiary=claim.uid,
        reason=(
            f"queue {queue} holds more than its {guaranteed} × {victim.chip}; queue {owner} takes "
            f"back what it is guaranteed"
        ),
    )


def explain_preemption(victim: RunningClaim, claim: ClaimSnapshot) -> Revocation:
    return Revocation(
        claim=victim.uid,
        beneficiary=claim.uid,
        reason=(
            f"makes room for a claim of priority {claim.priority} in the same queue; "
            f"its own is {victim.priority}"
        ),
    )


def explain_not_evaluated(placed: int, looked_at: int) -> PendingReason:
    return PendingReason(
        code=PendingCode.NOT_EVALUATED,
        reason=(
            f"this cycle placed {placed} claims and looked for room {looked_at} times before "
            f"it came to this one"
        ),
        numbers={"placed": placed, "looked_at": looked_at},
    )
