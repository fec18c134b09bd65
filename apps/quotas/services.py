"""Changes to queues and claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.services import audit
from apps.fleet.models import Card, Node
from apps.quotas.models import Allocation, Claim, ClaimTransition, Queue
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import (
    CLAIM,
    ClaimEvent,
    ClaimState,
    GangShape,
    ReleaseReason,
)
from controlplane.domain.scheduling.plans import Placement, Refusal
from controlplane.outbox.messages import publish
from controlplane.persistence.moves import move


class PlacementConflict(Exception):
    """The world changed between planning and committing; the next cycle plans again."""


@transaction.atomic
def claim_request(
    *,
    owner: tuple[str, str],
    team: Team,
    queue: Queue,
    shape: GangShape,
    chips: Sequence[str],
    priority: int = 0,
) -> Claim:
    """A new pending claim of ``owner`` (kind, uid).

    :raises ValueError: if it accepts no chip; it would wait for ever.
    """
    if not chips:
        raise ValueError("a claim must accept at least one chip, got none")
    kind, uid = owner
    claim = Claim.objects.create(
        owner_kind=kind,
        owner_uid=uid,
        team=team,
        queue=queue,
        shape=shape.as_json(),
        card_count=shape.cards,
        chips=list(chips),
        priority=priority,
        explanation="waiting for the next scheduling cycle",
    )
    publish("claim.requested", claim_uid=claim.uid)
    return claim


@transaction.atomic
def claim_admit(*, claim: Claim, placement: Placement, at: datetime) -> None:
    """Give the claim its cards, all of them, and tell its owner.

    :raises PlacementConflict: if a card is no longer usable or free, or its node no longer takes work.
    :raises IllegalTransition: if the claim no longer waits.
    """
    placement = _with_stand_ins(placement)
    uids = [uid for replica in placement.replicas for uid in replica.cards]
    cards = {
        card.uid: card
        for card in Card.objects.select_for_update(no_key=True).filter(uid__in=uids).order_by("uid")
    }
    nodes = {node.uid: node for node in Node.objects.filter(uid__in=_nodes_of(placement))}
    _check_still_possible(claim, placement, cards, nodes)
    move(
        claim,
        CLAIM,
        ClaimEvent.ADMIT,
        into=ClaimTransition,
        at=at,
        reason=placement.reason,
        explanation=placement.reason,
        explanation_numbers=dict(placement.numbers),
        chip=placement.chip,
        placement=_placement_json(placement, cards),
        admitted_at=at,
    )
    Allocation.objects.bulk_create(
        Allocation(
            claim=claim,
            card=cards[uid],
            node=nodes[replica.node],
            role=replica.role,
            replica=replica.index,
            allocated_at=at,
        )
        for replica in placement.replicas
        for uid in replica.cards
    )
    publish("claim.admitted", claim_uid=claim.uid)


def _with_stand_ins(placement: Placement) -> Placement:
    """Free cards of the node for those that its device plug-in chooses: they count as held, whichever it takes.

    :raises PlacementConflict: if the node has too few.
    """
    chosen: set[str] = set()
    replicas = []
    for replica in placement.replicas:
        cards = replica.cards
        if len(cards) < replica.count:
            held = Allocation.objects.filter(released_at=None).values("card_id")
            free = Card.objects.filter(
                node__uid=replica.node, chip=placement.chip, state=CardState.USABLE
            ).exclude(pk__in=held)
            left = free.exclude(uid__in=chosen).order_by("index")
            cards = tuple(left.values_list("uid", flat=True)[: replica.count])
            if len(cards) < replica.count:
                raise PlacementConflict("a card has been given to another claim")
            chosen.update(cards)
        replicas.append(replace(replica, cards=cards))
    return replace(placement, replicas=tuple(replicas))


def _nodes_of(placement: Placement) -> set[str]:
    return {replica.node for replica in placement.replicas}


def _check_still_possible(
    claim: Claim, placement: Placement, cards: dict[str, Card], nodes: dict[str, Node]
) -> None:
    for replica in placement.replicas:
        node = nodes.get(replica.node)
        if node is None or not node.ready or node.cordoned:
            raise PlacementConflict(f"node {replica.node} takes no work any more")
        for uid in replica.cards:
            if uid not in cards or cards[uid].state != CardState.USABLE:
                raise PlacementConflict(f"card {uid} is no longer usable")
    held = [card.pk for card in cards.values()]
    if Allocation.objects.filter(card_id__in=held, released_at=None).exists():
        raise PlacementConflict("a card has been given to another claim")
    queue = Queue.objects.select_for_update(no_key=True).get(pk=claim.queue_id)
    cap = queue.caps.get(placement.chip)
    if cap is not None:
        used = Allocation.objects.filter(
            claim__queue=queue, card__chip=placement.chip, released_at=None
        ).count()
        if used + len(cards) > cap:
            raise PlacementConflict(f"queue {queue.name} would hold {used + len(cards)} of {cap}")
    if not queue.open:
        raise PlacementConflict(f"queue {queue.name} has been closed")


def _placement_json(placement: Placement, cards: dict[str, Card]) -> list[dict[str, object]]:
    return [
        {
            "role": replica.role,
            "index": replica.index,
            "node": replica.node,
            "cards": [cards[uid].index for uid in replica.cards],
        }
        for replica in placement.replicas
    ]


@transaction.atomic
def claim_refused(*, refusals: Sequence[Refusal]) -> None:
    """Keep the reason with each claim, where it changed."""
    by_uid = {refusal.claim: refusal for refusal in refusals}
    # Locked, so that a claim admitted meanwhile keeps the reason of its admission.
    waiting = Claim.objects.select_for_update(no_key=True, skip_locked=True).filter(
        uid__in=by_uid, state=ClaimState.PENDING
    )
    changed = []
    for claim in waiting.order_by("id"):
        refusal = by_uid[claim.uid]
        if claim.explanation != refusal.reason:
            claim.explanation = refusal.reason
            claim.explanation_numbers = dict(refusal.numbers)
            changed.append(claim)
    Claim.objects.bulk_update(changed, ("explanation", "explanation_numbers"))


@transaction.atomic
def claim_revoke(
    *, claim: Claim, reason: ReleaseReason, grace: timedelta, at: datetime, why: str
) -> None:
    """Ask the owner to save and stop. The cards stay held until it has released.

    :raises IllegalTransition: if the claim holds nothing.
    """
    move(
        claim,
        CLAIM,
        ClaimEvent.REVOKE,
        into=ClaimTransition,
        at=at,
        reason=why,
        release_reason=reason,
        revoke_by=at + grace,
    )
    publish("claim.revoking", claim_uid=claim.uid)


@transaction.atomic
def claim_release(*, uid: str, reason: ReleaseReason, at: datetime) -> bool:
    """Free the cards. Only the owner calls it, and only when nothing of it runs any more.

    Says whether this call released it: False if it was released before, or never existed.
    """
    claim = Claim.objects.select_for_update(no_key=True).filter(uid=uid).first()
    if claim is None or claim.state == ClaimState.RELEASED:
        return False
    # A revocation's own reason outlives the owner's: it was preempted, even if it then "finished".
    kept = ReleaseReason(claim.release_reason) if claim.release_reason else reason
    move(
        claim,
        CLAIM,
        ClaimEvent.RELEASE,
        into=ClaimTransition,
        at=at,
        reason=kept,
        release_reason=kept,
        released_at=at,
    )
    Allocation.objects.filter(claim=claim, released_at=None).update(released_at=at)
    publish("claim.released", claim_uid=claim.uid)
    return True


def claim_progress(*, uid: str, progress: float, checkpointed_at: datetime | None = None) -> None:
    """The owner tells how far it is (0 to 1) and when it last saved."""
    changes: dict[str, object] = {"progress": progress}
    if checkpointed_at is not None:
        changes["checkpointed_at"] = checkpointed_at
    Claim.objects.filter(uid=uid).update(**changes)


@transaction.atomic
def queue_open(*, queue: Queue, is_open: bool, actor: User) -> bool:
    """Let a queue admit claims, or close it; what it holds goes on. Says whether that changed anything."""
    if not Queue.objects.filter(pk=queue.pk).exclude(open=is_open).update(open=is_open):
        return False
    action = "queue.open" if is_open else "queue.close"
    audit(actor=actor, action=action, team=queue.team, uid=queue.uid, name=queue.name)
    return True


def queue_ensure_default() -> Queue:
    """The queue that everybody may use."""
    queue, _ = Queue.objects.get_or_create(name="default")
    return queue
