"""The steps by which approved moves are made. Call each in a transaction of its own."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Q

from apps.fleet.models import Card
from apps.quotas.models import (
    Claim,
    MoveTransition,
    Nomination,
    Rearrangement,
    RearrangementMove,
    RearrangementTransition,
)
from apps.quotas.selectors import rearrangements as selectors
from apps.quotas.services.claims import claim_revoke
from controlplane.domain.claims import ClaimState, ReleaseReason
from controlplane.domain.rearrangements import (
    GRACE,
    IN_MOTION,
    KEPT_FOR,
    MOVE,
    MOVE_WITHIN,
    REARRANGEMENT,
    MoveEvent,
    MoveState,
    RearrangementEvent,
    Sight,
    cards_of,
)
from controlplane.persistence.moves import move


class OutOfDate(Exception):
    """The next step cannot be made any more; says why."""


def rearrangement_begin(*, row: Rearrangement, at: datetime) -> None:
    """Keep the room, and the cards that all moves go to, from now on.

    :raises OutOfDate: if the claims or cards are not as they were.
    """
    moves = selectors.moves_of(row)
    _lock({*row.room, *(card for step in moves for card in _target(step))})
    _check(row)
    cards_keep(row=row, at=at)
    rearrangement_move(row, RearrangementEvent.BEGIN, at=at, reason="moving")


def cards_keep(*, row: Rearrangement, at: datetime) -> None:
    """Nobody else gets them for a while longer: the room is for the claim or stays whole, the others for the work
    that moves there.
    """
    _keep_room(row, at)
    for step in selectors.moves_of(row):
        if step.state in (MoveState.PLANNED, *IN_MOTION):
            _nominate(_target(step), until=at + KEPT_FOR, work_uid=step.claim.work_uid)


def _keep_room(row: Rearrangement, at: datetime) -> None:
    work_uid = "" if row.claim is not None else row.uid
    _nominate(row.room, until=at + KEPT_FOR, claim=row.claim, work_uid=work_uid)


def _target(step: RearrangementMove) -> set[str]:
    return cards_of(selectors.replicas_of(step.target))


def move_begin(*, step: RearrangementMove, at: datetime) -> None:
    """Tell the work to save and stop; the cards that it goes to are kept for it.

    :raises OutOfDate: if this move, or one after it, cannot be made any more.
    """
    _check(step.rearrangement)
    cards_keep(row=step.rearrangement, at=at)
    why = f"it goes on elsewhere, so that {step.rearrangement.reason}"
    claim_revoke(claim=step.claim, reason=ReleaseReason.MOVED, grace=GRACE, at=at, why=why)
    until = at + MOVE_WITHIN
    _move(step, MoveEvent.STOP, at=at, reason="told to save and stop", begun_at=at, until=until)


def move_sight(*, step: RearrangementMove, at: datetime) -> Sight:
    """What is to be seen of a move that was begun."""
    claim = Claim.objects.get(pk=step.claim_id)
    successor = _successor(step)
    return Sight(
        released=claim.state == ClaimState.RELEASED,
        successor=ClaimState(successor.state) if successor else None,
        late=step.until is not None and at > step.until,
    )


def move_on(*, step: RearrangementMove, event: MoveEvent, at: datetime) -> None:
    """Record what has happened to a move that was begun."""
    successor = _successor(step)
    if event is MoveEvent.LEAVE:
        _move(step, event, at=at, reason="stopped; waiting for its cards", successor=successor)
        return
    if event is MoveEvent.LAND:
        reason = _landing(step, successor)
    elif event is MoveEvent.END:
        reason = "the work is over; its cards are free"
    else:
        minutes = round(MOVE_WITHIN.total_seconds() / 60)
        reason = f"it did not go on elsewhere within {minutes} min"
    if event is not MoveEvent.MISS:
        # Whoever missed its time may still get the cards, for as long as they are kept.
        _release(_target(step), step.claim.work_uid, successor)
    _move(step, event, at=at, reason=reason, successor=successor, ended_at=at)


def _landing(step: RearrangementMove, successor: Claim | None) -> str:
    planned = {replica.node for replica in selectors.replicas_of(step.target)}
    placed = {replica["node"] for replica in successor.placement} if successor else set()
    if placed <= planned:
        return "it goes on where it was to go"
    return "it goes on, on other nodes than planned"


def rearrangement_end(
    *,
    row: Rearrangement,
    event: RearrangementEvent,
    at: datetime,
    reason: str,
) -> None:
    """End it: what was not begun is dropped. Room for a claim stays kept for a while if it was made."""
    for step in selectors.moves_of(row).filter(state=MoveState.PLANNED):
        _release(_target(step), step.claim.work_uid, None)
        _move(step, MoveEvent.DROP, at=at, reason="not begun", ended_at=at)
    if event is RearrangementEvent.FINISH and row.claim is not None:
        _keep_room(row, at)
    else:
        _release(row.room, row.uid, row.claim)
    rearrangement_move(row, event, at=at, reason=reason, ended_at=at)


def _lock(cards: Iterable[str]) -> None:
    """In the order in which the scheduler locks them."""
    rows = Card.objects.select_for_update(no_key=True).filter(uid__in=cards).order_by("uid")
    list(rows.values_list("pk", flat=True))


def _check(row: Rearrangement) -> None:
    if changes := selectors.changes_since(row):
        raise OutOfDate(f"the fleet has changed: {'; '.join(changes)}")


def _nominate(
    cards: Iterable[str], *, until: datetime, claim: Claim | None = None, work_uid: str = ""
) -> None:
    """Keep those cards; what is kept for others stays theirs."""
    mine = _kept_for(work_uid, claim)
    Nomination.objects.filter(mine, card__uid__in=cards).update(until=until)
    Nomination.objects.bulk_create(
        (
            Nomination(card=card, claim=claim, work_uid=work_uid, until=until)
            for card in Card.objects.filter(uid__in=cards, nomination=None).order_by("uid")
        ),
        ignore_conflicts=True,
    )


def _release(cards: Iterable[str], work_uid: str, claim: Claim | None) -> None:
    Nomination.objects.filter(_kept_for(work_uid, claim), card__uid__in=cards).delete()


def _kept_for(work_uid: str, claim: Claim | None) -> Q:
    """For the work, or for the claim that it has made meanwhile."""
    mine = Q(claim=claim) if claim is not None else Q(pk=None)
    return mine | Q(work_uid=work_uid) | Q(claim__work_uid=work_uid) if work_uid else mine


def _successor(step: RearrangementMove) -> Claim | None:
    """The claim that takes its work up."""
    later = Claim.objects.filter(work_uid=step.claim.work_uid, pk__gt=step.claim_id)
    return later.order_by("pk").first()


def _move(
    step: RearrangementMove, event: MoveEvent, *, at: datetime, reason: str, **changes: Any
) -> None:
    move(step, MOVE, event, into=MoveTransition, at=at, reason=reason, **changes)


def rearrangement_move(
    row: Rearrangement,
    event: RearrangementEvent,
    *,
    at: datetime,
    reason: str,
    actor: str = "",
    **changes: Any,
) -> None:
    """One step of its machine; the reason is what its page says from then on.

    :raises IllegalTransition: if it has no such step from where it stands.
    """
    move(
        row,
        REARRANGEMENT,
        event,
        into=RearrangementTransition,
        at=at,
        reason=reason,
        actor=actor,
        state_reason=reason,
        **changes,
    )
