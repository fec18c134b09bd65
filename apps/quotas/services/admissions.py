"""Cards are given to claims: to each all that a plan says, or nothing."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from django.db import connection, models, transaction
from django.db.models import F, Func, Q, Value

from apps.fleet.models import Card, Cluster, Node
from apps.quotas.models import Allocation, Claim, ClaimTransition, Nomination
from apps.quotas.selectors.node_rows import NodeRow
from apps.quotas.selectors.snapshots import (
    cards_used,
    kept_cards,
    queues_locked,
    running_of,
)
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import CLAIM, ClaimEvent, ClaimState
from controlplane.domain.resources import Bytes, Millicpu, Resources
from controlplane.domain.scheduling.books import Applicant, Books, PlacementConflict
from controlplane.domain.scheduling.plans import Placement
from controlplane.domain.scheduling.snapshots import Binding, CardView, NodeView
from controlplane.outbox.messages import publish_each
from controlplane.persistence.moves import Step, move_each
from controlplane.persistence.pipelines import pipelined


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


@transaction.atomic(savepoint=False)
def claims_admit(*, placements: Sequence[Placement], at: datetime) -> Admissions:
    """Give each claim its cards and tell its owner; a placement that no longer holds is dropped by itself.

    Statements do not grow in number with the placements.
    """
    cards = _locked_cards(placements)
    claims = _locked_claims(placements)
    books, kept = _books(placements, cards, claims)
    entered: list[tuple[Claim, Placement]] = []
    conflicts: dict[str, str] = {}
    for placement in placements:
        claim = claims.get(placement.claim)
        try:
            entered.append(_entered(claim, placement, books))
        except PlacementConflict as conflict:
            conflicts[placement.claim] = str(conflict)
    _write(entered, {card.uid: card for card in cards}, at=at)
    if not claims.keys().isdisjoint(kept.values()):
        Nomination.objects.filter(claim__in=[claim for claim, _ in entered]).delete()
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


class _Card(NamedTuple):
    pk: int
    uid: str
    #: Its index on the node.
    place: int
    chip: str
    state: str
    node: int


def _locked_cards(placements: Sequence[Placement]) -> list[_Card]:
    """The cards that are named, and all of nodes that choose themselves, in the order in which all lock them."""
    replicas = [replica for placement in placements for replica in placement.replicas]
    named = [uid for replica in replicas for uid in replica.cards]
    which = Q(_any_of("uid", named))
    if choosing := {replica.node for replica in replicas if replica.count and not replica.cards}:
        which |= Q(node__uid__in=choosing, node__cluster__binding=Cluster.Binding.NODE)
    rows = Card.objects.select_for_update(no_key=True, of=("self",)).filter(which).order_by("uid")
    return [
        _Card._make(row)
        for row in rows.values_list("pk", "uid", "index", "chip", "state", "node_id")
    ]


def _locked_claims(placements: Sequence[Placement]) -> dict[str, Claim]:
    rows = (
        Claim.objects.select_for_update(no_key=True, of=("self",))
        .filter(_any_of("uid", [placement.claim for placement in placements]))
        .select_related("queue", "person")
        # What is asked for was looked at by the plan, and is nothing that changes.
        .only("uid", "state", "queue__uid", "person__username")
        .order_by("uid")
    )
    return {claim.uid: claim for claim in rows}


def _books(
    placements: Sequence[Placement], cards: Sequence[_Card], claims: Mapping[str, Claim]
) -> tuple[Books, Mapping[str, str]]:
    """What is given out now, and ``kept_cards``."""
    hosts = {replica.node for placement in placements for replica in placement.replicas}
    by_node: dict[int, list[_Card]] = {}
    for card in cards:
        by_node.setdefault(card.node, []).append(card)
    holding = Allocation.objects.filter(
        _any_of("card", [card.pk for card in cards]), released_at=None
    )
    held = dict(holding.order_by().values_list("card__uid", "claim__uid"))
    # Behind what is held: a card that is given back in between is seen as held, or as kept for an heir.
    kept = kept_cards()
    nodes = [
        _node_view(node, by_node.get(node.pk, ()), held=held, kept=kept) for node in _nodes(hosts)
    ]
    stated = queues_locked({claim.queue.uid for claim in claims.values()})
    used = cards_used()
    queues = {
        uid: replace(view, used=used[uid]) if uid in used else view for uid, view in stated.items()
    }
    limited = any(queue.running_per_person is not None for queue in queues.values())
    people = {claim.person_id for claim in claims.values() if claim.person_id} if limited else set()
    running = running_of(people) if people else ()
    return Books(nodes=nodes, queues=queues, running=running), kept


def _nodes(uids: Collection[str]) -> list[NodeRow]:
    rows = Node.objects.filter(_any_of("uid", sorted(uids))).order_by()
    return [
        NodeRow(*row, labels="")
        for row in rows.values_list(
            "pk",
            "uid",
            "name",
            "cluster__uid",
            "cluster__binding",
            "cpu",
            "memory",
            "ready",
            "cordoned",
        )
    ]


def _node_view(
    node: NodeRow, cards: Iterable[_Card], *, held: Mapping[str, str], kept: Mapping[str, str]
) -> NodeView:
    """As far as books ask: what its plug-in thinks of its cards is for the plan."""
    return NodeView(
        uid=node.uid,
        name=node.name,
        cluster=node.cluster,
        cards=tuple(
            CardView(
                uid=card.uid,
                index=card.place,
                chip=card.chip,
                state=CardState(card.state),
                held_by=held.get(card.uid),
                nominated_for=kept.get(card.uid, ""),
            )
            for card in sorted(cards, key=lambda card: card.place)
        ),
        capacity=Resources(cpu=Millicpu(node.cpu), memory=Bytes(node.memory)),
        schedulable=node.ready and not node.cordoned,
        binding=Binding(node.binding),
    )


def _any_of(column: str, values: Sequence[object]) -> Func:
    """``IN`` with one document, however many there are: thousands take longer to write than to look up."""
    kind = "bigint" if column == "card" else "text"
    return Func(
        F(column),
        Value(json.dumps(list(values)), output_field=models.TextField()),
        template=f"%(expressions)s::json)::{kind}))",
        arg_joiner=" = ANY(ARRAY(SELECT json_array_elements_text(",
        output_field=models.BooleanField(),
    )


# -- What is written --


def _write(
    entered: Sequence[tuple[Claim, Placement]], cards: Mapping[str, _Card], *, at: datetime
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
    with pipelined():
        move_each(steps, CLAIM, ClaimEvent.ADMIT, into=ClaimTransition, at=at, locked=True)
        _allocate(entered, cards, at=at)
        publish_each("claim.admitted", ({"claim_uid": claim.uid} for claim, _ in entered))


def _allocate(
    entered: Sequence[tuple[Claim, Placement]], cards: Mapping[str, _Card], *, at: datetime
) -> None:
    """A row for each card, thousands in one statement of one document."""
    replicas = [
        {
            "claim": claim.pk,
            "node": cards[replica.cards[0]].node,
            "role": replica.role,
            "replica": replica.index,
            "cards": [cards[uid].pk for uid in replica.cards],
        }
        for claim, placement in entered
        for replica in placement.replicas
        if replica.cards
    ]
    if not replicas:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO quotas_allocation (claim_id, card_id, node_id, role, replica, allocated_at)
            SELECT claim, unnest(cards), node, role, replica, %s
              FROM json_to_recordset(%s::json)
                   AS given(claim bigint, cards bigint[], node bigint, role text, replica int)
            """,
            [at, json.dumps(replicas)],
        )


def _placement_json(placement: Placement, cards: Mapping[str, _Card]) -> list[dict[str, object]]:
    return [
        {
            "role": replica.role,
            "index": replica.index,
            "node": replica.node,
            "cards": [cards[uid].place for uid in replica.cards],
        }
        for replica in placement.replicas
    ]
