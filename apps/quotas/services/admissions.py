"""Admission of claims: each gets all cards of its placement or none; and nominations of freed cards.

A nominated card is reserved for a while for the claim that it was freed for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import models, transaction
from django.db.models import F, Func, Q, Value

from apps.fleet.models import Card, Cluster, Node
from apps.quotas.models import Allocation, Claim, ClaimTransition, Nomination
from apps.quotas.selectors.snapshots import (
    NodeRow,
    allocated_cards_by_queue,
    lock_queue_snapshots,
    nominated_cards,
    running_claims_of,
)
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.domain.quotas.claims import CLAIM, ClaimEvent, ClaimState
from controlplane.domain.scheduling.commit_validation import (
    CommitClaim,
    CommitValidator,
    PlacementConflict,
)
from controlplane.domain.scheduling.plans import ClaimPlacement
from controlplane.domain.scheduling.snapshots import CardSelection, CardSnapshot, NodeSnapshot
from controlplane.outbox.messages import publish_messages
from controlplane.persistence.state_transitions import RowTransition, apply_transitions
from controlplane.persistence.transactions import execute, pipelined_statements


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionOutcomes:
    """Outcome of placements, by claim uid."""

    admitted: tuple[str, ...] = ()
    #: Why the other placements were dropped.
    conflicts: Mapping[str, str] = field(default_factory=dict)


@transaction.atomic(savepoint=False)
def claims_admit(*, placements: Sequence[ClaimPlacement], at: datetime) -> AdmissionOutcomes:
    """Allocate the cards of each placement and notify the owners; an invalid placement is dropped alone.

    The number of statements does not depend on the number of placements.
    """
    cards = _locked_cards(placements)
    claims = _locked_claims(placements)
    validator, nominated = _commit_validator_and_nominations(placements, cards, claims)
    validated: list[tuple[Claim, ClaimPlacement]] = []
    conflicts: dict[str, str] = {}
    for placement in placements:
        claim = claims.get(placement.claim)
        try:
            validated.append(_validate_placement(claim, placement, validator))
        except PlacementConflict as conflict:
            conflicts[placement.claim] = str(conflict)
    _write_admissions(validated, {card.uid: card for card in cards}, at=at)
    if not claims.keys().isdisjoint(nominated.values()):
        Nomination.objects.filter(claim__in=[claim for claim, _ in validated]).delete()
    return AdmissionOutcomes(
        admitted=tuple(claim.uid for claim, _ in validated), conflicts=conflicts
    )


def _validate_placement(
    claim: Claim | None, placement: ClaimPlacement, validator: CommitValidator
) -> tuple[Claim, ClaimPlacement]:
    if claim is None:
        raise PlacementConflict("claim.placement.claim_not_found", "the claim does not exist")
    if claim.state != ClaimState.PENDING:
        raise PlacementConflict(
            "claim.placement.claim_not_pending", "the claim is now {state}", state=claim.state
        )
    username = claim.user.username if claim.user else ""
    applicant = CommitClaim(uid=claim.uid, queue=claim.queue.uid, user=username)
    return claim, validator.admit(applicant, placement)


# -- Validation under locks --


class _LockedCard(NamedTuple):
    pk: int
    uid: str
    #: Its index on the node.
    place: int
    chip: str
    state: str
    node: int


def _locked_cards(placements: Sequence[ClaimPlacement]) -> list[_LockedCard]:
    """Cards of the placements, and all cards of nodes that choose cards themselves, locked in the common order."""
    replicas = [replica for placement in placements for replica in placement.replicas]
    named = [uid for replica in replicas for uid in replica.cards]
    which = Q(_in_json_values("uid", named))
    if choosing := {replica.node for replica in replicas if replica.count and not replica.cards}:
        which |= Q(node__uid__in=choosing, node__cluster__binding=Cluster.BindingMode.NODE)
    rows = Card.objects.select_for_update(no_key=True, of=("self",)).filter(which).order_by("uid")
    return [
        _LockedCard._make(row)
        for row in rows.values_list("pk", "uid", "index", "chip", "state", "node_id")
    ]


def _locked_claims(placements: Sequence[ClaimPlacement]) -> dict[str, Claim]:
    rows = (
        Claim.objects.select_for_update(no_key=True, of=("self",))
        .filter(_in_json_values("uid", [placement.claim for placement in placements]))
        .select_related("queue", "user")
        # The request is immutable and was validated by the plan.
        .only("uid", "state", "queue__uid", "user__username")
        .order_by("uid")
    )
    return {claim.uid: claim for claim in rows}


def _commit_validator_and_nominations(
    placements: Sequence[ClaimPlacement], cards: Sequence[_LockedCard], claims: Mapping[str, Claim]
) -> tuple[CommitValidator, Mapping[str, str]]:
    """Current usage for validation, and ``nominated_cards``."""
    hosts = {replica.node for placement in placements for replica in placement.replicas}
    by_node: dict[int, list[_LockedCard]] = {}
    for card in cards:
        by_node.setdefault(card.node, []).append(card)
    holding = Allocation.objects.filter(
        _in_json_values("card", [card.pk for card in cards]), released_at=None
    )
    holders = dict(holding.order_by().values_list("card__uid", "claim__uid"))
    # Read after the allocations: a card that is released in between appears allocated or nominated.
    nominated = nominated_cards()
    nodes = [
        _locked_node_snapshot(node, by_node.get(node.pk, ()), holders=holders, nominated=nominated)
        for node in _lock_nodes(hosts)
    ]
    stated = lock_queue_snapshots({claim.queue.uid for claim in claims.values()})
    used = allocated_cards_by_queue()
    queues = {
        uid: replace(view, used=used[uid]) if uid in used else view for uid, view in stated.items()
    }
    limited = any(queue.max_running_per_user is not None for queue in queues.values())
    users = {claim.user_id for claim in claims.values() if claim.user_id} if limited else set()
    running = running_claims_of(users) if users else ()
    return CommitValidator(nodes=nodes, queues=queues, running=running), nominated


def _lock_nodes(uids: Collection[str]) -> list[NodeRow]:
    rows = Node.objects.filter(_in_json_values("uid", sorted(uids))).order_by()
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


def _locked_node_snapshot(
    node: NodeRow,
    cards: Iterable[_LockedCard],
    *,
    holders: Mapping[str, str],
    nominated: Mapping[str, str],
) -> NodeSnapshot:
    """The node as far as validation needs it; geometry of cards matters only to the plan."""
    return NodeSnapshot(
        uid=node.uid,
        name=node.name,
        cluster=node.cluster,
        cards=tuple(
            CardSnapshot(
                uid=card.uid,
                index=card.place,
                chip=card.chip,
                state=CardState(card.state),
                held_by=holders.get(card.uid),
                nominated_for=nominated.get(card.uid, ""),
            )
            for card in sorted(cards, key=lambda card: card.place)
        ),
        capacity=Resources(cpu=Millicpu(node.cpu), memory=Bytes(node.memory)),
        schedulable=node.ready and not node.cordoned,
        binding=CardSelection(node.binding),
    )


def _in_json_values(column: str, values: Sequence[object]) -> Func:
    """``IN`` with one JSON parameter: thousands of parameters take longer to send than the lookup."""
    kind = "bigint" if column == "card" else "text"
    return Func(
        F(column),
        Value(json.dumps(list(values)), output_field=models.TextField()),
        template=f"%(expressions)s::json)::{kind}))",
        arg_joiner=" = ANY(ARRAY(SELECT json_array_elements_text(",
        output_field=models.BooleanField(),
    )


# -- Writes --


def _write_admissions(
    validated: Sequence[tuple[Claim, ClaimPlacement]],
    cards: Mapping[str, _LockedCard],
    *,
    at: datetime,
) -> None:
    steps = [
        RowTransition(
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
        for claim, placement in validated
    ]
    with pipelined_statements():
        apply_transitions(steps, CLAIM, ClaimEvent.ADMIT, into=ClaimTransition, at=at, locked=True)
        _insert_allocations(validated, cards, at=at)
        publish_messages("claim.admitted", ({"claim_uid": claim.uid} for claim, _ in validated))


def _insert_allocations(
    validated: Sequence[tuple[Claim, ClaimPlacement]],
    cards: Mapping[str, _LockedCard],
    *,
    at: datetime,
) -> None:
    """Insert a row per card, thousands in one statement with one JSON parameter."""
    replicas = [
        {
            "claim": claim.pk,
            "node": cards[replica.cards[0]].node,
            "role": replica.role,
            "replica": replica.index,
            "cards": [cards[uid].pk for uid in replica.cards],
        }
        for claim, placement in validated
        for replica in placement.replicas
        if replica.cards
    ]
    if not replicas:
        return
    execute(
        """
        INSERT INTO quotas_allocation (claim_id, card_id, node_id, role, replica, allocated_at)
        SELECT claim, unnest(cards), node, role, replica, %s
          FROM json_to_recordset(%s::json)
               AS given(claim bigint, cards bigint[], node bigint, role text, replica int)
        """,
        [at, json.dumps(replicas)],
    )


def _placement_json(
    placement: ClaimPlacement, cards: Mapping[str, _LockedCard]
) -> list[dict[str, object]]:
    return [
        {
            "role": replica.role,
            "index": replica.index,
            "node": replica.node,
            "cards": [cards[uid].place for uid in replica.cards],
        }
        for replica in placement.replicas
    ]


#: Duration of a nomination. All claims that are evicted for one claim have stopped by then.
NOMINATION_TTL = timedelta(minutes=10)


def nominations_create(*, released: Iterable[Claim], at: datetime) -> None:
    """Nominate the cards of evicted claims for their beneficiaries, if these are still pending.

    Call it in the transaction that releases them, before their cards are released. Unusable cards are not
    nominated, and existing nominations are kept.
    """
    beneficiaries = {
        claim.pk: claim.revoked_for
        for claim in released
        if claim.revoked_for is not None and claim.revoked_for.state == ClaimState.PENDING
    }
    if not beneficiaries:
        return
    held = Allocation.objects.filter(
        claim__in=beneficiaries, released_at=None, card__state=CardState.USABLE
    ).order_by("card__uid")
    Nomination.objects.bulk_create(
        (
            Nomination(
                card_id=each.card_id, claim=beneficiaries[each.claim_id], until=at + NOMINATION_TTL
            )
            for each in held
        ),
        ignore_conflicts=True,
    )


def nominations_reassign(*, claims: Iterable[Claim]) -> None:
    """Reassign nominations for workloads to their new claims."""
    by_work = {claim.work_uid: claim for claim in claims if claim.work_uid}
    nominated = Nomination.objects.filter(claim=None, work_uid__in=by_work)
    for work in (
        nominated.order_by().values_list("work_uid", flat=True).distinct() if by_work else ()
    ):
        nominated.filter(work_uid=work).update(claim=by_work[work], work_uid="")


def nominations_prune(*, at: datetime) -> int:
    """Delete nominations that expired or whose claim is no longer pending; return their number."""
    # Called before each cycle and mostly without effect. A scalar subquery: a join may read all claims that
    # ever existed.
    pruned: int = execute(
        """
        DELETE FROM quotas_nomination AS kept
         WHERE kept.until <= %s
            OR (SELECT claim.state FROM quotas_claim AS claim WHERE claim.id = kept.claim_id) <> %s
        """,
        [at, ClaimState.PENDING.value],
    )
    return pruned


def nominations_delete(*, claims: Collection[str]) -> int:
    """Delete the nominations of those claims, given by uid; return their number."""
    deleted, _ = Nomination.objects.filter(claim__uid__in=claims).delete() if claims else (0, {})
    return deleted
