"""Cards are given to claims: to each all that a plan says, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from apps.fleet.models import Card, Cluster, Node
from apps.quotas.models import Allocation, Claim, ClaimTransition, Nomination
from apps.quotas.selectors.snapshots import (
    cards_used,
    kept_cards,
    node_view,
    queues_stated,
    running_of,
)
from controlplane.domain.claims import CLAIM, ClaimEvent, ClaimState
from controlplane.domain.scheduling.books import Applicant, Books, PlacementConflict
from controlplane.domain.scheduling.plans import Placement
from controlplane.outbox.messages import publish_each
from controlplane.persistence.moves import Step, move_each


@dataclass(frozen=True, slots=True, kw_only=True)
class Admissions:
    """What became of a number of placements; both by the uid of the claim."""

    admitted: tuple[str, ...] = ()
    #: Why the others were dropped: the world had changed.
    conflicts: Mapping[str, str] = field(default_factory=dict)


def claim_admit(*, claim: Claim, placement: Placement, at: datetime) -> None:
    """Give the claim its cards, all of them, and tell its owner.

    :raises PlacementConflict: if it no longer waits, or what it was to get can no longer be given.
    """
    outcome = claims_admit(placements=(placement,), at=at)
    if placement.claim in outcome.conflicts:
        raise PlacementConflict(outcome.conflicts[placement.claim])
    claim.refresh_from_db()


@transaction.atomic
def claims_admit(*, placements: Sequence[Placement], at: datetime) -> Admissions:
    """Give each claim its cards and tell its owner; a placement that no longer holds is dropped by itself.

    Statements do not grow in number with the placements.
    """
    cards = _locked_cards(placements)
    claims = _locked_claims(placements)
    books = _books(placements, cards, claims)
    entered: list[tuple[Claim, Placement]] = []
    conflicts: dict[str, str] = {}
    for placement in placements:
        claim = claims.get(placement.claim)
        try:
            entered.append(_entered(claim, placement, books))
        except PlacementConflict as conflict:
            conflicts[placement.claim] = str(conflict)
    _write(entered, {card.uid: card for card in cards}, at=at)
    return Admissions(admitted=tuple(claim.uid for claim, _ in entered), conflicts=conflicts)


def _entered(claim: Claim | None, placement: Placement, books: Books) -> tuple[Claim, Placement]:
    if claim is None:
        raise PlacementConflict("the claim does not exist")
    if claim.state != ClaimState.PENDING:
        raise PlacementConflict(f"the claim is {claim.state} by now")
    person = claim.person.username if claim.person else ""
    applicant = Applicant(uid=claim.uid, queue=claim.queue.uid, person=person)
    return claim, books.enter(applicant, placement)


# -- What is looked at once more, under locks --


def _locked_cards(placements: Sequence[Placement]) -> list[Card]:
    """The cards that are named, and all of nodes that choose themselves, in the order in which all lock them."""
    replicas = [replica for placement in placements for replica in placement.replicas]
    named = Q(uid__in=[uid for replica in replicas for uid in replica.cards])
    chosen = Q(
        node__uid__in={replica.node for replica in replicas},
        node__cluster__binding=Cluster.Binding.NODE,
    )
    return list(
        Card.objects.select_for_update(no_key=True, of=("self",))
        .filter(named | chosen)
        .order_by("uid")
    )


def _locked_claims(placements: Sequence[Placement]) -> dict[str, Claim]:
    rows = (
        Claim.objects.select_for_update(no_key=True, of=("self",))
        .filter(uid__in=[placement.claim for placement in placements])
        .select_related("queue", "person")
        .order_by("uid")
    )
    return {claim.uid: claim for claim in rows}


def _books(
    placements: Sequence[Placement], cards: Sequence[Card], claims: Mapping[str, Claim]
) -> Books:
    hosts = {replica.node for placement in placements for replica in placement.replicas}
    by_node: dict[int, list[Card]] = {}
    for card in cards:
        by_node.setdefault(card.node_id, []).append(card)
    pks = [card.pk for card in cards]
    held = dict(
        Allocation.objects.filter(card__in=pks, released_at=None).values_list(
            "card__uid", "claim__uid"
        )
    )
    kept = kept_cards()
    nodes = [
        node_view(node, by_node.get(node.pk, ()), held=held, kept=kept)
        for node in Node.objects.filter(uid__in=hosts).select_related("cluster")
    ]
    stated, used = queues_stated(locked=True), cards_used()
    queues = {uid: replace(view, used=used.get(uid, {})) for uid, view in stated.items()}
    limited = any(queue.running_per_person is not None for queue in queues.values())
    people = {claim.person_id for claim in claims.values() if claim.person_id} if limited else set()
    return Books(nodes=nodes, queues=queues, running=running_of(people) if people else ())


# -- What is written --


def _write(
    entered: Sequence[tuple[Claim, Placement]], cards: Mapping[str, Card], *, at: datetime
) -> None:
    steps = [
        Step(
            row=claim,
            reason=placement.reason,
            changes={
                "explanation": placement.reason,
                "explanation_numbers": dict(placement.numbers),
                "chip": placement.chip,
                "placement": _placement_json(placement, cards),
                "admitted_at": at,
                "metered_until": at,
            },
        )
        for claim, placement in entered
    ]
    move_each(steps, CLAIM, ClaimEvent.ADMIT, into=ClaimTransition, at=at)
    Allocation.objects.bulk_create(
        allocation
        for claim, placement in entered
        for allocation in _held(claim, placement, cards, at)
    )
    Nomination.objects.filter(claim__in=[claim for claim, _ in entered]).delete()
    publish_each("claim.admitted", ({"claim_uid": claim.uid} for claim, _ in entered))


def _held(
    claim: Claim, placement: Placement, cards: Mapping[str, Card], at: datetime
) -> Iterator[Allocation]:
    for replica in placement.replicas:
        for uid in replica.cards:
            yield Allocation(
                claim=claim,
                card=cards[uid],
                node_id=cards[uid].node_id,
                role=replica.role,
                replica=replica.index,
                allocated_at=at,
            )


def _placement_json(placement: Placement, cards: Mapping[str, Card]) -> list[dict[str, object]]:
    return [
        {
            "role": replica.role,
            "index": replica.index,
            "node": replica.node,
            "cards": [cards[uid].index for uid in replica.cards],
        }
        for replica in placement.replicas
    ]
