"""Which card is meant by a node's name and a place in it, or by a serial number.

Every batch asks this for every card, and the answer changes when a cluster does, which is seldom. So each process
keeps it, and looks again when it is old or a batch speaks of a card that it does not know. What is written by a
stale answer is harmless: a card that is gone is left out when figures are written.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from apps.fleet.models import Card
from apps.monitoring.models import CardFigures

#: Seconds after which it is read anew, and at least between two readings for the sake of unknown cards.
LONGEST, SHORTEST = 30.0, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    node: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    serial: str
    #: Primary key of the source that it was said by.
    source: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The whole cards of a cluster by what figures call them."""

    read_at: float
    by_place: dict[tuple[str, int], int]
    by_serial: dict[str, int]
    of: dict[int, Place]
    #: What each card said of itself last; absent where nothing was heard of it.
    said: dict[int, Said]
    nodes: frozenset[str]

    def card(self, *, node: str, index: int | None, serial: str) -> int | None:
        """Its primary key; None if there is no such card.

        Where only a serial number is said, it has to be in that node: a card that moved shows its new place by
        its index.
        """
        if index is not None:
            return self.by_place.get((node, index))
        card = self.by_serial.get(serial)
        return card if card is not None and self.of[card].node == node else None


_known: dict[int, Places] = {}


def places_of(cluster: int, *, anew: bool = False) -> Places:
    """Of the cluster with that primary key; ``anew`` looks again unless that was done a moment ago."""
    places = _known.get(cluster)
    age = time.monotonic() - places.read_at if places is not None else LONGEST
    if places is None or age >= (SHORTEST if anew else LONGEST):
        places = _known[cluster] = _read(cluster)
    return places


def places_forget(cluster: int) -> None:
    """Look again at the next question, because something was changed."""
    _known.pop(cluster, None)


def _read(cluster: int) -> Places:
    whole = Card.objects.filter(node__cluster=cluster, node__removed_at=None, parent=None)
    rows = list(whole.values_list("pk", "node__name", "index", "serial"))
    heard = CardFigures.objects.filter(card__in=whole)
    said = {
        card: Said(serial=serial, source=source)
        for card, serial, source in heard.values_list("card_id", "serial", "source_id")
    }
    serials = {pk: serial for pk, _, _, serial in rows}
    serials |= {card: one.serial for card, one in said.items() if one.serial}
    return Places(
        read_at=time.monotonic(),
        by_place={(node, index): pk for pk, node, index, _ in rows},
        by_serial={serial: pk for pk, serial in serials.items() if serial},
        of={pk: Place(node=node, index=index) for pk, node, index, _ in rows},
        said=said,
        nodes=frozenset(node for _, node, _, _ in rows),
    )
