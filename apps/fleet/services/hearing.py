"""What figures say of cards beside their values: that one is still there, which hardware it is, and where."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db import transaction

from apps.fleet.models import Card, Node
from controlplane.domain.accelerators import CardState

#: Why a card is unknown of which no figures come any more. Only this reason is taken back when they do.
UNHEARD = "its figures have stopped coming"


@transaction.atomic
def cards_unheard(*, cards: Collection[int]) -> int:
    """Give no new work to usable cards of which nothing is heard; says how many those were.

    Whoever withheld a card for another reason keeps it. ``cards`` are primary keys.
    """
    return _turn(
        cards,
        was=(CardState.USABLE, None),
        becomes=(CardState.UNKNOWN, UNHEARD),
    )


@transaction.atomic
def cards_heard(*, cards: Collection[int]) -> int:
    """Take that back; says for how many cards it was."""
    return _turn(cards, was=(CardState.UNKNOWN, UNHEARD), becomes=(CardState.USABLE, ""))


def _turn(
    cards: Collection[int],
    *,
    was: tuple[CardState, str | None],
    becomes: tuple[CardState, str],
) -> int:
    rows = Card.objects.filter(pk__in=cards, state=was[0])
    if was[1] is not None:
        rows = rows.filter(state_reason=was[1])
    # In the order of admissions and of inventories: none waits for another in a circle.
    held = list(rows.select_for_update(no_key=True, of=("self",)).order_by("uid"))
    state, reason = becomes
    return Card.objects.filter(pk__in=[card.pk for card in held]).update(
        state=state, state_reason=reason
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Renumbered:
    """A card that says another serial number than it did; empty before where it never said one."""

    before: str
    after: str


@transaction.atomic
def serials_learn(*, serials: Mapping[int, Renumbered]) -> int:
    """Keep serial numbers that cards say of themselves, by primary key; how many rows changed.

    What its cluster reports goes first: only a number that is missing or came from here is replaced.
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
def locality_learn(*, node: int, cards: Mapping[str, Mapping[str, object]]) -> None:
    """Store where cards of a node are attached, by index; cards that are not named keep what is known of them.

    Placement follows with the next inventory of the cluster. ``node`` is a primary key.
    """
    row = Node.objects.select_for_update(no_key=True).get(pk=node)
    row.locality = {**row.locality, **cards}
    row.save(update_fields=["locality"])
