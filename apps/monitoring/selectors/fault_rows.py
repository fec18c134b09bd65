"""Faults as lists and pages show them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from django.db.models import Case, Count, Q, QuerySet, When, Window

from apps.fleet.models import Card, Node
from apps.monitoring.models import Fault, Isolation
from apps.monitoring.selectors.faults import faults_shown
from controlplane.domain.faults import FaultLevel


def faults_standing() -> QuerySet[Fault]:
    """Those that nobody has said to be over, notes left out, the worst first."""
    rows = faults_shown().filter(ended_at=None, level__gt=FaultLevel.NOTE)
    return rows.order_by("-level", "-id")


class Worst(NamedTuple):
    faults: Sequence[Fault]
    #: How many stand.
    standing: int


def faults_worst(*, most: int) -> Worst:
    """The worst that stand and that nobody has acknowledged, and how many stand in all."""
    rows = faults_standing().annotate(standing=Window(Count("pk")))
    # Those that somebody has read come last, so that one statement tells both.
    read = Case(When(acknowledged_at=None, then=0), default=1)
    found = list(rows.order_by(read, "-level", "-id")[:most])
    return Worst(
        faults=[fault for fault in found if fault.acknowledged_at is None],
        standing=found[0].standing if found else 0,
    )


def faults_of_node(node: Node) -> list[Fault]:
    """What stands on the node and on its cards, the worst first."""
    return list(faults_shown().filter(node=node, ended_at=None).order_by("-level", "-id"))


def faults_of_card(card: Card) -> QuerySet[Fault]:
    """All that was ever wrong with the card, and what stands on its node as a whole."""
    own = Q(card=card) | Q(node=card.node_id, card=None, ended_at=None)
    return faults_shown().filter(own)


class Place(NamedTuple):
    """Primary keys; of the node as a whole where there is no card."""

    node: int
    card: int | None


def isolations_by_place(nodes: Collection[int]) -> Mapping[Place, Isolation]:
    """What is out of use on those nodes, named by primary key."""
    rows = Isolation.objects.filter(node__in=nodes, ended_at=None).select_related("fault")
    return {Place(row.node_id, row.card_id): row for row in rows}


def isolations_at(faults: Collection[Fault]) -> Mapping[int, Isolation]:
    """By the fault's primary key, what is out of use where it is: its card, or the whole node."""
    by_place = isolations_by_place({fault.node_id for fault in faults})
    found = {}
    for fault in faults:
        places = (Place(fault.node_id, fault.card_id), Place(fault.node_id, None))
        isolation = next((by_place[place] for place in places if place in by_place), None)
        if isolation is not None:
            found[fault.pk] = isolation
    return found
