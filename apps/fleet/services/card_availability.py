"""Availability of cards and nodes (cordon, isolate, return to service), their serial numbers and locality."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import transaction
from django.db.models.functions import Coalesce

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.fleet.models import Card, Node
from apps.fleet.selectors import require_fleet_operator
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import Reason, ReasonedError
from controlplane.persistence.bulk_writes import bulk_update_rows

#: Why a card is unknown after its return to service; the next observation clears it.
UNREADY = Reason(
    "card.state.node_not_ready", "the card was returned to service while its node was not ready"
)
#: States that withhold a card from scheduling; observations and plans do not clear them.
WITHHELD = frozenset({CardState.NO_NEW_WORK, CardState.ISOLATED})


def lock_cards_of_nodes(*, nodes: Collection[int]) -> list[Card]:
    """Lock and return all cards of those nodes, slices included, until the transaction ends.

    In the lock order of admissions: a concurrent admission has finished, or will see what is written now.
    """
    rows = Card.objects.select_for_update(no_key=True, of=("self",)).filter(node__in=nodes)
    return list(rows.order_by("uid"))


def withhold_card_from_scheduling(card: Card, *, state: CardState, reason: str) -> bool:
    """Set the state on the object; return False if the card is withheld at least as much already.

    :raises ValueError: if ``state`` does not withhold anything.
    """
    if state not in WITHHELD:
        raise ValueError(f"a card that is {state} is not withheld; use {sorted(WITHHELD)}")
    if card.state in (state, CardState.ISOLATED):
        return False
    card.state, card.state_reason = state, reason
    return True


def card_states_save(*, cards: Sequence[Card]) -> None:
    """Save the states of these locked cards from their objects, in one statement."""
    bulk_update_rows(cards, ("state", "state_reason"))


def cards_return_to_service(*, cards: Iterable[Card]) -> None:
    """Return those of these locked cards that are withheld to service.

    Cards of a node that is not ready become unknown instead, until the next inventory.
    """
    withheld = [card for card in cards if card.state in WITHHELD]
    unready_nodes = Node.objects.filter(pk__in={card.node_id for card in withheld}, ready=False)
    unready = set(unready_nodes.values_list("pk", flat=True))
    for card in withheld:
        if card.node_id in unready:
            card.state, card.state_reason = CardState.UNKNOWN, UNREADY
        else:
            card.state, card.state_reason = CardState.USABLE, ""
    card_states_save(cards=withheld)


def nodes_isolate(*, nodes: Collection[int], at: datetime) -> frozenset[int]:
    """Cordon these nodes and record that they are isolated, the isolated ones since when they were.

    Return the primary keys of those that were not cordoned.
    """
    rows = Node.objects.select_for_update(no_key=True, of=("self",)).filter(pk__in=nodes)
    locked = list(rows.order_by("uid").values_list("pk", "cordoned"))
    Node.objects.filter(pk__in=[pk for pk, _ in locked]).update(
        cordoned=True, isolated_since=Coalesce("isolated_since", at)
    )
    return frozenset(pk for pk, cordoned in locked if not cordoned)


def nodes_return_to_service(*, nodes: Collection[int], uncordon: Collection[int] = ()) -> None:
    """Record that these nodes are not isolated any more, and uncordon some: those that isolation cordoned."""
    # Also nodes that were removed with their cluster, which the default manager hides.
    Node._base_manager.filter(pk__in=nodes).update(isolated_since=None)
    Node.objects.filter(pk__in=uncordon).update(cordoned=False)


def node_isolation_taint_record(*, node: int, tainted: bool) -> bool:
    """Record that the cluster's node gets our isolation taint, or has lost it.

    Return False and change nothing if it is not isolated, or is isolated again. ``node`` is a primary key.
    """
    rows = Node.objects.filter(pk=node, isolated_since__isnull=not tainted)
    return bool(rows.update(tainted=tainted))


#: Why a card without recent metrics is unknown. Only this reason is cleared when metrics arrive again.
METRICS_STALE = Reason("card.metrics.stale", "no metrics of the card within the heartbeat timeout")


@transaction.atomic
def cards_mark_metrics_stale(*, cards: Collection[int]) -> int:
    """Mark usable cards without recent metrics as unknown; return how many changed.

    Cards that are withheld for another reason are not changed. ``cards`` are primary keys.
    """
    return _change_card_states(
        cards,
        was=(CardState.USABLE, None),
        becomes=(CardState.UNKNOWN, METRICS_STALE),
    )


@transaction.atomic
def cards_mark_metrics_fresh(*, cards: Collection[int]) -> int:
    """Mark those cards as usable again; return how many changed."""
    return _change_card_states(
        cards, was=(CardState.UNKNOWN, METRICS_STALE), becomes=(CardState.USABLE, "")
    )


def _change_card_states(
    cards: Collection[int],
    *,
    was: tuple[CardState, str | None],
    becomes: tuple[CardState, str],
) -> int:
    rows = Card.objects.filter(pk__in=cards, state=was[0])
    if was[1] is not None:
        rows = rows.filter(state_reason=was[1])
    # In the lock order of admissions and inventories: no deadlock.
    locked = list(rows.select_for_update(no_key=True, of=("self",)).order_by("uid"))
    state, reason = becomes
    return Card.objects.filter(pk__in=[card.pk for card in locked]).update(
        state=state, state_reason=reason
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialNumberChange:
    """A changed serial number in the metrics of a card; ``before`` is empty if there was none."""

    before: str
    after: str


@transaction.atomic
def card_serials_record(*, serials: Mapping[int, SerialNumberChange]) -> int:
    """Store serial numbers from metrics, by primary key; return how many rows changed.

    The report of the cluster has precedence: only a missing number or one from metrics is replaced.
    """
    rows = Card.objects.select_for_update(no_key=True, of=("self",)).filter(pk__in=serials)
    changed = []
    for card in rows.order_by("uid"):
        learned = serials[card.pk]
        if card.serial in ("", learned.before) and card.serial != learned.after:
            card.serial = learned.after
            changed.append(card)
    Card.objects.bulk_update(changed, ["serial"], batch_size=1000)
    return len(changed)


@transaction.atomic
def node_locality_record(*, node: int, cards: Mapping[str, Mapping[str, object]]) -> None:
    """Store where cards of a node are attached, by index; other cards keep their values.

    Placement follows with the next inventory of the cluster. ``node`` is a primary key.
    """
    row = Node.objects.select_for_update(no_key=True).get(pk=node)
    row.locality = {**row.locality, **cards}
    row.save(update_fields=["locality"])


class NodeIsolated(ReasonedError):
    """The whole node is isolated: it takes workloads again after its return to service."""

    def __init__(self, node: Node, *, since: datetime) -> None:
        when = f"{since.astimezone(UTC):%Y-%m-%d %H:%M}"
        super().__init__(
            "node.isolation.whole_node",
            "node {node} has been isolated since {since} UTC; return the whole node "
            "to service instead",
            node=str(node),
            since=when,
        )
        self.since = since


@transaction.atomic
def node_set_cordoned(*, node: Node, cordoned: bool, actor: User) -> bool:
    """Cordon or uncordon a node; running workloads continue.

    Return whether that changed anything.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises NodeIsolated: if it would be uncordoned while it is isolated.
    """
    require_fleet_operator(actor)
    if not cordoned:
        # Isolation locks the row too: it has finished, or sees the node uncordoned.
        row = Node.objects.select_for_update(no_key=True).filter(pk=node.pk)
        if since := row.values_list("isolated_since", flat=True).first():
            raise NodeIsolated(node, since=since)
    if not Node.objects.filter(pk=node.pk).exclude(cordoned=cordoned).update(cordoned=cordoned):
        return False
    action = "node.cordon" if cordoned else "node.uncordon"
    record_audit_entry(node, actor=actor, action=action, cluster=node.cluster.name)
    return True
