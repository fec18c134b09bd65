"""Apply decisions as far as they still hold, and record their outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from apps.fleet.models import Card, Cluster, Node
from apps.fleet.services import card_availability
from apps.monitoring.models import Decision, Fault, Place
from apps.monitoring.services.isolations import (
    GRACE,
    IsolationRequest,
    cards_isolated_with,
    isolations_begin,
    isolations_end,
    open_isolations_at,
)
from apps.quotas.models import Allocation
from apps.quotas.services import claims_evict
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import Reason, join_reasons
from controlplane.domain.health.faults import SignalOrigin
from controlplane.domain.health.isolations import IsolationEvent, IsolationState
from controlplane.domain.health.snapshots import HealthAction, HealthDecision
from controlplane.outbox.messages import publish_message
from controlplane.persistence.bulk_writes import bulk_insert_rows
from controlplane.persistence.leases import LeaderLease
from controlplane.persistence.models import UidModel

Outcome = Decision.Outcome

#: States of cards by the action that isolates them.
STATES: Mapping[HealthAction, CardState] = {
    HealthAction.RESET_WHEN_IDLE: CardState.NO_NEW_WORK,
    HealthAction.RESET_NOW: CardState.ISOLATED,
    HealthAction.ISOLATE_CARD: CardState.ISOLATED,
    HealthAction.ISOLATE_NODE: CardState.ISOLATED,
}
#: Whom a restart is for. The gateway repeats a request by itself; a training step is only run again with its job.
_RESTARTED: Mapping[HealthAction, tuple[str, ...]] = {
    HealthAction.RESTART_REQUEST: ("job",),
    HealthAction.RESTART_JOB: (),
}
#: Decisions without a fault, such as a release or a suspicion, are notified again after this time while they
#: wait.
_REPEAT_INTERVAL = timedelta(days=1)


class LeaderLeaseLost(Exception):
    """Another run has the lease; nothing was written."""


@dataclass(slots=True)
class _DecisionContext:
    """The rows that a number of decisions are about, locked where they are written."""

    nodes: Mapping[str, Node]
    cards: Sequence[Card]
    faults: Mapping[str, Fault]
    card_of: Mapping[str, Card]
    outcomes: dict[int, Outcome] = field(default_factory=dict)


@transaction.atomic
def decisions_apply(
    *, decided: Sequence[HealthDecision], lease: LeaderLease, at: datetime
) -> dict[str, int]:
    """Apply all decisions or none; return the number of decisions by outcome. Nothing is notified twice.

    The number of statements does not depend on the number of decisions.

    :raises LeaderLeaseLost: if the run that decided no longer has the lease.
    """
    if not lease.check():
        raise LeaderLeaseLost
    context = _decision_context(decided)
    there = _suppress_ambiguous_restarts(
        [each for each in decided if _decision_target_exists(each, context)], context, at=at
    )
    acting = [each for each in there if not each.held_back]
    done = _isolate_targets(acting, context, at=at) | _evict_claims(acting, context, at=at)
    done |= _release_targets(acting, context, at=at)
    rows = [_decision_row(each, context, done=id(each) in done, at=at) for each in there]
    fresh = _decisions_not_yet_notified(rows, at=at)
    Decision.objects.bulk_create(fresh)
    if held := [row for row in fresh if row.outcome == Outcome.HELD_BACK]:
        publish_message("decisions.held_back", decision_uids=[row.uid for row in held])
    return _count_decisions(fresh)


@transaction.atomic
def suppressed_decisions_store(
    *, decided: Sequence[HealthDecision], lease: LeaderLease, at: datetime
) -> int:
    """Store decisions without an action and without notifications; return their number.

    No rows are locked, so that thousands fit into one transaction.

    :raises LeaderLeaseLost: if the run that decided no longer has the lease.
    """
    if not lease.check():
        raise LeaderLeaseLost
    nodes = _primary_keys(Node, (each.node for each in decided))
    cards = _primary_keys(Card, (each.card for each in decided))
    faults = _primary_keys(Fault, (each.fault for each in decided))
    return bulk_insert_rows(
        [
            Decision(
                node_id=nodes[each.node],
                card_id=cards.get(each.card),
                fault_id=faults.get(each.fault),
                action=each.action,
                outcome=Outcome.DONE,
                reason=each.reason,
                at=at,
            )
            for each in decided
            if each.node in nodes and (not each.card or each.card in cards)
        ]
    )


def _primary_keys(model: type[UidModel], uids: Iterable[str]) -> dict[str, int]:
    """Primary keys of those that are there, by uid."""
    rows = model._default_manager.filter(uid__in=set(uids) - {""})
    return dict(rows.values_list("uid", "pk"))


def _decision_context(decided: Iterable[HealthDecision]) -> _DecisionContext:
    those = list(decided)
    nodes = Node.objects.filter(uid__in={each.node for each in those}).select_related("cluster")
    by_uid = {node.uid: node for node in nodes}
    # Cards before all else, in the order of admissions.
    cards = card_availability.lock_cards_of_nodes(nodes=[node.pk for node in by_uid.values()])
    faults = Fault.objects.filter(uid__in={each.fault for each in those if each.fault})
    return _DecisionContext(
        nodes=by_uid,
        cards=cards,
        faults={fault.uid: fault for fault in faults},
        card_of={card.uid: card for card in cards},
    )


def _decision_target_exists(each: HealthDecision, context: _DecisionContext) -> bool:
    """Nodes and cards go with their cluster."""
    return each.node in context.nodes and (not each.card or each.card in context.card_of)


def _suppress_ambiguous_restarts(
    decided: Sequence[HealthDecision], context: _DecisionContext, *, at: datetime
) -> list[HealthDecision]:
    """Return all decisions; restarts are suppressed where several claims may use the card, so that a user
    decides.
    """
    unclear = {
        id(each): each
        for each in decided
        if each.action in _RESTARTED and each.card and not each.held_back
        if _place_of_known_claim(each, context)[1] is None
    }
    holders = _claims_by_decision(list(unclear.values()), context, at=at)
    return [
        replace(each, held_back=_format_card_count(count))
        if id(each) in unclear and (count := len(holders[id(each)])) > 1
        else each
        for each in decided
    ]


def _place_of_known_claim(each: HealthDecision, context: _DecisionContext) -> Place:
    """The card whose claim the decision concerns, or the node if its plug-in assigns cards within the node."""
    node = context.nodes[each.node]
    bound = node.cluster.binding == Cluster.BindingMode.NODE
    return node.pk, None if bound or not each.card else context.card_of[each.card].pk


def _format_card_count(count: int) -> str:
    return Reason(
        "fault.jobs.ambiguous",
        "the cluster binds by node, so the job that uses the card is unknown; "
        "jobs with cards on the node since the fault began: {count}",
        count=count,
    )


def _claims_by_decision(
    decided: Sequence[HealthDecision], context: _DecisionContext, *, at: datetime
) -> dict[int, set[int]]:
    """By identity of the decision: the claims that had any card of its node allocated since its fault began.

    Not only current claims: the one with the faulty card may have failed because of it, and no other is evicted
    then.
    """
    if not decided:
        return {}
    began = {
        id(each): fault.began_at if (fault := context.faults.get(each.fault)) else at
        for each in decided
    }
    held = Allocation.objects.filter(node__uid__in={each.node for each in decided}).filter(
        Q(released_at=None) | Q(released_at__gte=min(began.values()))
    )
    rows = list(held.values_list("node__uid", "claim_id", "released_at"))
    return {
        id(each): {
            claim
            for node, claim, released_at in rows
            if node == each.node and (released_at is None or released_at >= began[id(each)])
        }
        for each in decided
    }


def _isolate_targets(
    decided: Sequence[HealthDecision], context: _DecisionContext, *, at: datetime
) -> set[int]:
    out = [each for each in decided if each.action in STATES]
    if not out:
        return set()
    orders = [
        IsolationRequest(
            node=context.nodes[each.node],
            card=context.card_of.get(each.card),
            state=STATES[each.action],
            reason=each.reason,
            fault=context.faults.get(each.fault),
            grace=_eviction_grace(context.faults.get(each.fault)),
        )
        for each in out
    ]
    begun = isolations_begin(orders=orders, cards=context.cards, at=at)
    places = {(row.node_id, row.card_id) for row in begun}
    return {id(each) for each, order in zip(out, orders, strict=True) if order.place in places}


def _eviction_grace(fault: Fault | None) -> timedelta:
    """Zero for a node that is unreachable: its workloads cannot be told to save."""
    return timedelta() if fault is not None and fault.origin == SignalOrigin.SILENCE else GRACE


def _evict_claims(
    decided: Sequence[HealthDecision], context: _DecisionContext, *, at: datetime
) -> set[int]:
    """Evict the claims but not the cards; an action is done if it was applied, also where nothing ran."""
    done = set()
    for action, kinds in _RESTARTED.items():
        those = [each for each in decided if each.action is action]
        if not those:
            continue
        reasons = {
            card.pk: each.reason
            for each in those
            for card in cards_isolated_with(_place_of_known_claim(each, context), context.cards)
        }
        nodes = {each.node: each.reason for each in those if not each.card}
        claims_evict(cards=reasons, nodes=nodes, grace=GRACE, at=at, kinds=kinds)
        done |= {id(each) for each in those}
    return done


def _release_targets(
    decided: Sequence[HealthDecision], context: _DecisionContext, *, at: datetime
) -> set[int]:
    """Only isolations that passed their test and were not requested by a user; checked again on the rows."""
    back = [each for each in decided if each.action is HealthAction.RELEASE]
    if not back:
        return set()
    standing = open_isolations_at(nodes=[context.nodes[each.node].pk for each in back])
    done, rows = set(), []
    for each in back:
        card = context.card_of.get(each.card)
        row = standing.get((context.nodes[each.node].pk, card.pk if card else None))
        if row is None or row.actor_name or row.proved_at is None:
            continue
        if row.state == IsolationState.TESTING:
            rows.append(row)
            done.add(id(each))
    if rows:
        reason = Reason(
            "isolation.end.burn_in_passed", "the fault has ended and the burn-in passed"
        )
        isolations_end(rows=rows, event=IsolationEvent.PROVE, reason=reason, at=at)
    return done


def _decision_row(
    each: HealthDecision, context: _DecisionContext, *, done: bool, at: datetime
) -> Decision:
    if each.followed:
        outcome = Outcome.FOLLOWED
    elif each.held_back:
        outcome = Outcome.HELD_BACK
    else:
        outcome = Outcome.DONE if done else Outcome.OVERTAKEN
    reason = join_reasons(filter(None, (each.reason, each.held_back)))
    return Decision(
        node=context.nodes[each.node],
        card=context.card_of.get(each.card),
        fault=context.faults.get(each.fault),
        action=each.action,
        outcome=outcome,
        reason=reason,
        at=at,
    )


def _decisions_not_yet_notified(rows: Sequence[Decision], *, at: datetime) -> list[Decision]:
    """Pending decisions are computed in each run but stored once for a fault and action.

    Without a fault, they are notified again after a while, since the cause may be another one.
    """
    waiting = (Outcome.HELD_BACK, Outcome.FOLLOWED)
    again = [row for row in rows if row.outcome in waiting]
    notified = set(
        Decision.objects.filter(
            outcome__in=waiting,
            node__in=[row.node_id for row in again],
        )
        .filter(
            Q(fault__in=[row.fault_id for row in again if row.fault_id])
            | Q(fault=None, at__gt=at - _REPEAT_INTERVAL)
        )
        .values_list("node_id", "card_id", "fault_id", "action", "outcome")
    )
    return [
        row
        for row in rows
        if (row.node_id, row.card_id, row.fault_id, row.action, row.outcome) not in notified
    ]


def _count_decisions(rows: Iterable[Decision]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.outcome] = counts.get(row.outcome, 0) + 1
    return counts
