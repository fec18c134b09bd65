"""Isolation of cards and nodes: the state of the cards, the claims on them and the row change together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.fleet.models import Card, Cluster, Node
from apps.fleet.selectors import require_fleet_operator
from apps.fleet.services import card_availability
from apps.monitoring.models import Fault, Isolation, IsolationTransition, Place
from apps.quotas.models import Allocation, Claim
from apps.quotas.selectors.claim_snapshots import ALLOCATED_STATES
from apps.quotas.services import claims_evict
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import Reason, ReasonedError
from controlplane.domain.health.isolations import ISOLATION, IsolationEvent, IsolationState
from controlplane.domain.quotas.claims import ReleaseReason
from controlplane.outbox.messages import publish_messages
from controlplane.persistence.state_transitions import (
    RowTransition,
    apply_transition,
    apply_transitions,
)

#: How long what runs there has to save and stop.
GRACE = timedelta(seconds=30)
#: More are not ordered in one transaction: the cards of their nodes are locked meanwhile.
MOST_AT_ONCE = 500


class IsolationRefused(ReasonedError):
    """The card or node cannot be isolated or released; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationRequest:
    """A request to isolate a card, or a whole node where ``card`` is None."""

    node: Node
    card: Card | None
    #: ``isolated``: what runs there stops; ``no_new_work``: it may end by itself.
    state: CardState
    reason: str
    fault: Fault | None = None
    #: User name; empty for a rule.
    actor_name: str = ""
    #: Time for workloads to save; zero for an unreachable node.
    grace: timedelta = GRACE

    @property
    def place(self) -> Place:
        return (self.node.pk, self.card.pk if self.card else None)


def isolations_begin(
    *, orders: Sequence[IsolationRequest], cards: Sequence[Card], at: datetime
) -> list[Isolation]:
    """Isolate each target and evict the claims there, in the transaction of the caller.

    No isolation becomes weaker: a request that adds nothing to an open isolation leaves it unchanged. The number
    of statements does not depend on the number of requests.

    :param cards: all cards of the nodes, locked by ``lock_cards_of_nodes``.
    :return: isolations that began or became stricter, in the order of the requests.
    """
    standing = open_isolations_at(nodes=[order.node.pk for order in orders])
    begun: list[tuple[IsolationRequest, Isolation]] = []
    changed: dict[int, Card] = {}
    of_node = _group_cards_by_node(cards)
    for order in orders:
        isolation = standing.get(order.place)
        # On the objects, so that the next order about the same cards sees it.
        stricter = [
            card
            for card in cards_isolated_with(order.place, of_node[order.node.pk])
            if card_availability.withhold_card_from_scheduling(
                card, state=order.state, reason=order.reason
            )
        ]
        proved = isolation is not None and isolation.proved_at is not None
        known = isolation is not None or _is_covered_by_node(order, standing)
        if known and not stricter and not proved:
            continue
        changed |= {card.pk: card for card in stricter}
        if isolation is None:
            isolation = standing[order.place] = Isolation(node=order.node, card=order.card)
        _write_isolation_request(isolation, order, at=at)
        begun.append((order, isolation))
    card_availability.card_states_save(cards=list(changed.values()))
    _create_isolated_cards(begun, cards, at=at)
    return [isolation for _, isolation in begun]


def open_isolations_at(*, nodes: Iterable[int]) -> dict[Place, Isolation]:
    """Open isolations of those nodes, by (node, card), locked."""
    rows = Isolation.objects.select_for_update(no_key=True, of=("self",)).filter(
        node__in=list(nodes), ended_at=None
    )
    return {(row.node_id, row.card_id): row for row in rows.order_by("pk")}


def cards_isolated_with(place: Place, cards: Iterable[Card]) -> list[Card]:
    """What goes with it: the card and its slices, or all cards of the node."""
    node, card = place
    if card is None:
        return [each for each in cards if each.node_id == node]
    return [each for each in cards if card in (each.pk, each.parent_id)]


def _group_cards_by_node(cards: Iterable[Card]) -> Mapping[int, list[Card]]:
    """So that an order does not go through the cards of all orders."""
    of_node: dict[int, list[Card]] = defaultdict(list)
    for card in cards:
        of_node[card.node_id].append(card)
    return of_node


def _is_covered_by_node(order: IsolationRequest, standing: Mapping[Place, Isolation]) -> bool:
    """Whether the card belongs to a node that is isolated itself; a whole node has a row of its own."""
    return order.card is not None and (order.node.pk, None) in standing


def _write_isolation_request(
    isolation: Isolation, order: IsolationRequest, *, at: datetime
) -> None:
    isolation.reason = order.reason
    isolation.fault = order.fault or isolation.fault
    # Isolations requested by a user are not taken over by rules.
    isolation.actor_name = order.actor_name or isolation.actor_name
    isolation.proved_at = None
    if isolation._state.adding:
        isolation.began_at = at


def _create_isolated_cards(
    begun: Sequence[tuple[IsolationRequest, Isolation]], cards: Sequence[Card], *, at: datetime
) -> None:
    fresh = [row for _, row in begun if row._state.adding]
    known = [row for _, row in begun if not row._state.adding]
    whole = {isolation.node_id: isolation for _, isolation in begun if isolation.card_id is None}
    for node in card_availability.nodes_isolate(nodes=whole, at=at):
        whole[node].cordoned_node = True
    Isolation.objects.bulk_create(fresh)
    Isolation.objects.bulk_update(
        known, ["reason", "fault", "actor_name", "proved_at", "cordoned_node"]
    )
    tested = [row for row in known if row.state == IsolationState.TESTING]
    _transition_isolations(
        tested,
        IsolationEvent.FAIL,
        reason=Reason(
            "isolation.burn_in.isolated_again",
            "the card or node was isolated again during the burn-in",
        ),
        at=at,
    )
    for grace in sorted({order.grace for order, _ in begun}):
        _evict_workloads([order for order, _ in begun if order.grace == grace], cards, grace, at)
    publish_messages("isolation.begun", ({"isolation_uid": row.uid} for _, row in begun))


def _evict_workloads(
    orders: Sequence[IsolationRequest], cards: Sequence[Card], grace: timedelta, at: datetime
) -> None:
    stopping = [order for order in orders if order.state == CardState.ISOLATED]
    of_node = _group_cards_by_node(cards)
    reasons = {
        card.pk: order.reason
        for order in stopping
        for card in cards_isolated_with(order.place, of_node[order.node.pk])
    }
    nodes = {order.node.uid: order.reason for order in stopping if order.card is None}
    if reasons or nodes:
        claims_evict(cards=reasons, nodes=nodes, grace=grace, at=at, reason=ReleaseReason.FAULT)


def _transition_isolations(
    rows: Sequence[Isolation],
    event: IsolationEvent,
    *,
    reason: str,
    at: datetime,
    **changes: Any,
) -> None:
    steps = [RowTransition(row=row, reason=reason, changes=changes) for row in rows]
    apply_transitions(steps, ISOLATION, event, into=IsolationTransition, at=at)


def isolation_transition(
    row: Isolation, event: IsolationEvent, *, at: datetime, reason: str, **changes: Any
) -> None:
    """:raises IllegalTransition: if the event does not apply to its state."""
    apply_transition(
        row, ISOLATION, event, into=IsolationTransition, at=at, reason=reason, **changes
    )


# -- Release --


def isolations_end(
    *, rows: Sequence[Isolation], event: IsolationEvent, reason: str, at: datetime, actor: str = ""
) -> None:
    """End isolations in the transaction of the caller: cards that are not isolated otherwise accept workloads
    again.

    :raises IllegalTransition: if the event does not apply to the state of one of them, or it ended meanwhile.
    """
    cards = card_availability.lock_cards_of_nodes(nodes={row.node_id for row in rows})
    standing = open_isolations_at(nodes={row.node_id for row in rows})
    ending = {row.pk for row in rows}
    still_out = {
        card.pk
        for place, other in standing.items()
        if other.pk not in ending
        for card in cards_isolated_with(place, cards)
    }
    for row in rows:
        isolation_transition(row, event, at=at, reason=reason, actor=actor, ended_at=at)
    free = {card.pk: card for row in rows for card in cards_isolated_with(row.place, cards)}
    card_availability.cards_return_to_service(
        cards=[card for pk, card in free.items() if pk not in still_out]
    )
    card_availability.nodes_return_to_service(
        nodes=[row.node_id for row in rows if row.card_id is None],
        uncordon=[row.node_id for row in rows if row.cordoned_node],
    )
    publish_messages("isolation.ended", ({"isolation_uid": row.uid} for row in rows))


# -- Requests of users --


@transaction.atomic
def isolations_request(
    *,
    nodes: Sequence[str] = (),
    cards: Sequence[str] = (),
    reason: str,
    actor: User,
    at: datetime,
    state: CardState = CardState.ISOLATED,
) -> list[Isolation]:
    """Isolate nodes and cards, by uid, until a user releases them; return the isolations that changed.

    Isolations by rules become isolations of the user. On a cluster that binds by node, the isolation of a card
    applies to the whole node: a row without a card is returned, with that reason.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises IsolationRefused: without a reason, for unknown targets, or for too many at once.
    """
    require_fleet_operator(actor)
    require_isolation_reason(reason)
    if not 1 <= len(nodes) + len(cards) <= MOST_AT_ONCE:
        raise IsolationRefused(
            "isolation.request.invalid_count",
            "select 1 to {limit} cards and nodes, got {count}",
            limit=MOST_AT_ONCE,
            count=len(nodes) + len(cards),
        )
    those = list(Node.objects.filter(uid__in=nodes).select_related("cluster").order_by("uid"))
    single = list(
        Card.objects.filter(uid__in=cards).select_related("node__cluster").order_by("uid")
    )
    known = {each.uid for each in (*those, *single)}
    if unknown := sorted({*nodes, *cards} - known):
        raise IsolationRefused(
            "isolation.request.not_found",
            "node or card {uid} does not exist; it may have been removed",
            uid=repr(unknown[0]),
        )
    places: dict[tuple[Node, Card | None], str] = {(node, None): reason for node in those}
    for card in single:
        whole = card.node.cluster.binding == Cluster.BindingMode.NODE
        place = (card.node, None if whole else card)
        places.setdefault(place, _whole_node_isolation_reason(reason) if whole else reason)
    orders = [
        IsolationRequest(
            node=node, card=part, state=state, reason=explanation, actor_name=actor.username
        )
        for (node, part), explanation in places.items()
    ]
    locked = card_availability.lock_cards_of_nodes(nodes={order.node.pk for order in orders})
    claimed = _assign_isolations_to_user(orders, actor=actor)
    begun = isolations_begin(orders=orders, cards=locked, at=at)
    for row in {row.pk: row for row in (*claimed, *begun)}.values():
        _audit_isolation(row, actor=actor, action="isolation.begin", reason=row.reason)
    return begun


def _whole_node_isolation_reason(reason: str) -> str:
    return Reason(
        "isolation.request.whole_node",
        "{reason}; the whole node is isolated, because its cluster binds by node "
        "and any job on it may use the card",
        reason=reason,
    )


def _assign_isolations_to_user(
    orders: Sequence[IsolationRequest], *, actor: User
) -> list[Isolation]:
    standing = open_isolations_at(nodes=[order.node.pk for order in orders])
    rules = []
    for order in orders:
        row = standing.get(order.place)
        if row is not None and not row.actor_name:
            row.actor_name, row.reason = actor.username, order.reason
            rules.append(row)
    Isolation.objects.bulk_update(rules, ["actor_name", "reason"])
    return rules


@transaction.atomic
def isolations_release(
    *, uids: Sequence[str], reason: str, actor: User, at: datetime
) -> list[Isolation]:
    """Release isolations in any state; return those that were open.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises IsolationRefused: without a reason.
    """
    require_fleet_operator(actor)
    require_isolation_reason(reason)
    named = Isolation.objects.filter(uid__in=uids, ended_at=None)
    # Cards before the rows about them, as everywhere.
    card_availability.lock_cards_of_nodes(nodes=set(named.values_list("node_id", flat=True)))
    rows = list(
        named.select_for_update(no_key=True, of=("self",))
        .select_related("node__cluster", "card")
        .order_by("pk")
    )
    if not rows:
        return []
    isolations_end(
        rows=rows, event=IsolationEvent.RELEASE, reason=reason, at=at, actor=actor.username
    )
    for row in rows:
        _audit_isolation(row, actor=actor, action="isolation.release", reason=reason)
    return rows


@transaction.atomic
def burn_ins_request(*, uids: Sequence[str], actor: User, at: datetime) -> int:
    """Request burn-in runs as soon as the cards are empty; return their number.

    A running burn-in is not interrupted; isolations that passed and are still open are tested again.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_fleet_operator(actor)
    rows = Isolation.objects.select_for_update(no_key=True, of=("self",)).filter(
        uid__in=uids, ended_at=None
    )
    under_way = Q(state=IsolationState.TESTING, proved_at=None)
    asked = list(rows.exclude(under_way).select_related("node", "card"))
    passed = [row for row in asked if row.state == IsolationState.TESTING]
    _transition_isolations(
        passed,
        IsolationEvent.FAIL,
        reason=Reason("isolation.burn_in.requested_again", "another burn-in was requested"),
        at=at,
        proved_at=None,
    )
    for row in asked:
        row.test_asked_at = at
        _audit_isolation(row, actor=actor, action="isolation.test")
    Isolation.objects.bulk_update(asked, ["test_asked_at"])
    return len(asked)


def require_isolation_reason(reason: str) -> None:
    """:raises IsolationRefused: without one."""
    if not reason.strip():
        raise IsolationRefused(
            "isolation.reason.missing", "enter a reason; it is stored in the history"
        )


def _audit_isolation(row: Isolation, *, actor: User, action: str, **detail: Any) -> None:
    record_audit_entry(row, actor=actor, action=action, name=str(row.card or row.node), **detail)


# -- On its way --


@transaction.atomic
def isolations_of_removed_nodes_end(*, at: datetime) -> int:
    """End isolations of nodes that were removed with their cluster; return their number."""
    rows = Isolation.objects.filter(ended_at=None, node__removed_at__isnull=False)
    gone = list(rows.select_for_update(skip_locked=True, no_key=True, of=("self",)).order_by("pk"))
    _transition_isolations(
        gone,
        IsolationEvent.RELEASE,
        reason=Reason("cluster.state.removed", "the cluster of this object was removed"),
        at=at,
        ended_at=at,
    )
    card_availability.nodes_return_to_service(
        nodes=[row.node_id for row in gone if row.card_id is None]
    )
    return len(gone)


@transaction.atomic
def drained_isolations_advance(*, at: datetime) -> list[Isolation]:
    """Advance isolations that are drained and have no claims left; return them."""
    draining = Isolation.objects.filter(state=IsolationState.DRAINING, ended_at=None)
    held = Allocation.objects.filter(released_at=None)
    # Most cards have no parent, and NOT IN is unknown for a list with a NULL.
    sliced = held.filter(card__parent__isnull=False)
    busy = Q(card__in=held.values("card")) | Q(card__in=sliced.values("card__parent"))
    empty = Q(card=None) & ~Q(node__in=held.values("node"))
    empty |= Q(card__isnull=False) & ~busy
    rows = draining.filter(empty).select_for_update(skip_locked=True, no_key=True, of=("self",))
    emptied = [
        row
        for row in rows.select_related("node").order_by("pk")
        if not _has_claim_without_cards(row)
    ]
    _transition_isolations(
        emptied,
        IsolationEvent.EMPTIED,
        reason=Reason("isolation.state.empty", "no workloads remain on the card or node"),
        at=at,
        drained_at=at,
    )
    return emptied


def _has_claim_without_cards(row: Isolation) -> bool:
    """Whether some claim has a place on the node though it holds none of its cards."""
    there = Claim.objects.filter(
        state__in=ALLOCATED_STATES, placement__contains=[{"node": row.node.uid}]
    )
    return row.card_id is None and there.exists()
