"""Cards and nodes are taken out of use, and given back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from apps.fleet.models import Card, Node
from controlplane.domain.accelerators import CardState
from controlplane.persistence.updates import update_each

#: Why a card is unknown that was withheld; the next observation of it takes this back.
UNREADY = "it was given back while its node was not ready"
#: States that say so: neither an observation nor a plan may take them back.
WITHHELD = frozenset({CardState.NO_NEW_WORK, CardState.ISOLATED})


def cards_lock(*, nodes: Collection[int]) -> list[Card]:
    """All cards of those nodes, slices too, locked until the transaction ends.

    In the order in which admissions lock them: who wants to place work there has done so, or will see what is
    written now.
    """
    rows = Card.objects.select_for_update(no_key=True, of=("self",)).filter(node__in=nodes)
    return list(rows.order_by("uid"))


def withhold(card: Card, *, state: CardState, reason: str) -> bool:
    """Set on the object that nothing new comes to it; False if it is withheld as much as that already.

    :raises ValueError: if ``state`` does not withhold anything.
    """
    if state not in WITHHELD:
        raise ValueError(f"a card that is {state} is not withheld; use {sorted(WITHHELD)}")
    if card.state in (state, CardState.ISOLATED):
        return False
    card.state, card.state_reason = state, reason
    return True


def cards_keep(*, cards: Sequence[Card]) -> None:
    """Write the states of these cards, which are locked, as their objects have them; one statement."""
    update_each(cards, ("state", "state_reason"))


def cards_release(*, cards: Iterable[Card]) -> None:
    """Let work come again to those of these cards, which are locked, that are withheld.

    Those of a node that is not ready are unknown instead, until the inventory says how they are.
    """
    withheld = [card for card in cards if card.state in WITHHELD]
    away = Node.objects.filter(pk__in={card.node_id for card in withheld}, ready=False)
    unready = set(away.values_list("pk", flat=True))
    for card in withheld:
        if card.node_id in unready:
            card.state, card.state_reason = CardState.UNKNOWN, UNREADY
        else:
            card.state, card.state_reason = CardState.USABLE, ""
    cards_keep(cards=withheld)


def nodes_withhold(*, nodes: Collection[int]) -> frozenset[int]:
    """Let no work without cards come to these nodes either; primary keys of those that took some until now."""
    open_ones = Node.objects.select_for_update(no_key=True, of=("self",)).filter(
        pk__in=nodes, cordoned=False
    )
    taken = list(open_ones.order_by("uid").values_list("pk", flat=True))
    Node.objects.filter(pk__in=taken).update(cordoned=True)
    return frozenset(taken)


def nodes_release(*, nodes: Collection[int]) -> None:
    """The end of ``nodes_withhold``, for nodes that it closed."""
    Node.objects.filter(pk__in=nodes).update(cordoned=False)
