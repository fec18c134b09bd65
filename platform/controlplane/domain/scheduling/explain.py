"""The words of each choice and each refusal, with their numbers.

People read one sentence; programs read its numbers. The sentences are few and fixed, as pages show them in other
languages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controlplane.domain.claims import WHOLE_CARD
from controlplane.domain.quotas import Limit, Shortage
from controlplane.domain.scheduling.people import PersonLimit
from controlplane.domain.scheduling.plans import (
    Placement,
    Reason,
    RefusalCode,
    ReplicaPlacement,
    Revocation,
)
from controlplane.domain.scheduling.snapshots import ClaimView, RunningView

#: What a bound on all chips together is a bound on.
ANY_CHIP = "cards of any chip"


def explain_placement(
    claim: ClaimView, chip: str, replicas: tuple[ReplicaPlacement, ...], names: Mapping[str, str]
) -> Placement:
    """:param names: of the nodes, by uid."""
    nodes = sorted({names[replica.node] for replica in replicas})
    shape = claim.shape.in_words()
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
    return Placement(
        claim=claim.uid,
        chip=chip,
        replicas=replicas,
        reason=reason,
        numbers={
            "nodes": len(nodes),
            "cards": cards_of(replicas),
            "wanted": claim.shape.cards,
        },
    )


def explain_shortage(shortage: Shortage) -> Reason:
    """What the queue, or one above it, has against a claim.

    :param shortage: in thousandths of cards.
    """
    queue, kind = shortage.queue, shortage.chip or ANY_CHIP
    wanted, used = _in_cards(shortage.wanted), _in_cards(shortage.used)
    bound, kept = _in_cards(shortage.bound), _in_cards(shortage.kept)
    lendable = _in_cards(shortage.lendable)
    numbers = {"wanted": wanted, "used": used}
    match shortage.limit:
        case Limit.CLOSED:
            return Reason(
                code=RefusalCode.QUEUE_CLOSED,
                reason=f"queue {queue} is closed; it admits nothing until it is opened",
            )
        case Limit.CAP if shortage.kept:
            return Reason(
                code=RefusalCode.QUEUE_CAP,
                reason=(
                    f"needs {wanted} × {kind}; queue {queue} holds {used} of at most {bound} and "
                    f"keeps {kept} for others"
                ),
                numbers={**numbers, "cap": bound, "kept": kept},
            )
        case Limit.CAP:
            return Reason(
                code=RefusalCode.QUEUE_CAP,
                reason=f"needs {wanted} × {kind}; queue {queue} holds {used} of at most {bound}",
                numbers={**numbers, "cap": bound},
            )
        case Limit.DOES_NOT_BORROW:
            return Reason(
                code=RefusalCode.NO_BORROWING,
                reason=(
                    f"needs {wanted} × {kind}; queue {queue} holds {used} of the {bound} that it is "
                    f"guaranteed, keeps {kept} for others and borrows nothing"
                )
                if kept
                else (
                    f"needs {wanted} × {kind}; queue {queue} holds {used} of the {bound} that it "
                    f"is guaranteed, and borrows nothing"
                ),
                numbers={**numbers, "guaranteed": bound, **({"kept": kept} if kept else {})},
            )
        case Limit.NOTHING_TO_BORROW:
            return Reason(
                code=RefusalCode.NO_BORROWING,
                reason=(
                    f"needs {wanted} × {kind}, more than queue {queue} is guaranteed; {bound} are "
                    f"free, of which {lendable} may be borrowed"
                ),
                numbers={**numbers, "free": bound, "lendable": lendable},
            )
        case Limit.KEPT_BY_OTHERS:
            kept = _in_cards(shortage.bound - shortage.lendable)
            return Reason(
                code=RefusalCode.NO_BORROWING,
                reason=(
                    f"needs {wanted} × {kind}; {bound} are free, but other queues keep {kept} of them"
                ),
                numbers={**numbers, "free": bound, "kept": kept},
            )


def _in_cards(amount: int) -> float:
    """A whole number of cards as one."""
    return amount / WHOLE_CARD if amount % WHOLE_CARD else amount // WHOLE_CARD


def explain_person(limit: PersonLimit) -> Reason:
    """What a queue has against one more claim of the same person."""
    person, queue, bound, held = limit.person, limit.queue, limit.bound, limit.held
    numbers = {"held": held, "limit": bound}
    if limit.first:
        return Reason(
            code=RefusalCode.PERSON_LIMIT,
            reason=(
                f"{person} holds {held} of at most {bound} claims of queue {queue}, and others of "
                f"{person} come first: {limit.first}"
            ),
            numbers={**numbers, "first": limit.first},
        )
    return Reason(
        code=RefusalCode.PERSON_LIMIT,
        reason=f"{person} holds {held} of at most {bound} claims of queue {queue}",
        numbers=numbers,
    )


def explain_reserved(claim: ClaimView, chip: str, *, queue: str) -> Reason:
    """:param queue: name of the queue whose claim the room is kept for."""
    return Reason(
        code=RefusalCode.RESERVED,
        reason=(
            f"needs {claim.shape.in_words()} of {chip}; there is room, but it is kept for a claim "
            f"of queue {queue} that comes first"
        ),
        numbers={"wanted": claim.shape.cards},
    )


def explain_faster(claim: ClaimView, chip: str, faster: str) -> Reason:
    """:param chip: that it could have now."""
    return Reason(
        code=RefusalCode.AWAITS_FASTER,
        reason=(
            f"needs {claim.shape.in_words()}; {chip} has room, but it ends sooner if it waits for {faster}"
        ),
        numbers={"wanted": claim.shape.cards},
    )


def explain_awaited(chip: str, running: Iterable[RunningView]) -> Reason:
    """:param running: claims that were told to stop."""
    stopping = list(running)
    cards = sum(cards_of(view.replicas) for view in stopping)
    return Reason(
        code=RefusalCode.AWAITS_CARDS,
        reason=f"awaits {cards} × {chip} of claims that were told to stop for it: {len(stopping)}",
        numbers={"cards": cards, "claims": len(stopping)},
    )


def explain_reclaim(
    victim: RunningView, claim: ClaimView, *, queue: str, guaranteed: int, owner: str
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


def explain_preemption(victim: RunningView, claim: ClaimView) -> Revocation:
    return Revocation(
        claim=victim.uid,
        beneficiary=claim.uid,
        reason=(
            f"makes room for a claim of priority {claim.priority} in the same queue; "
            f"its own is {victim.priority}"
        ),
    )


def not_looked_at(placed: int, looked_at: int) -> Reason:
    return Reason(
        code=RefusalCode.NOT_LOOKED_AT,
        reason=(
            f"this cycle placed {placed} claims and looked for room {looked_at} times before "
            f"it came to this one"
        ),
        numbers={"placed": placed, "looked_at": looked_at},
    )


def cards_of(replicas: Iterable[ReplicaPlacement]) -> int:
    return sum(len(replica.cards) or replica.count for replica in replicas)
