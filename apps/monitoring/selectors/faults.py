"""Faults and what is out of use, for lists; what happened to one card, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Q, QuerySet

from apps.fleet.models import Card
from apps.monitoring.models import Decision, Fault, Isolation, IsolationTransition

#: Entries of each kind in a card's timeline.
_MOST = 100


def faults_shown() -> QuerySet[Fault]:
    """All that there were, the newest first."""
    rows = Fault.objects.filter(node__removed_at=None, node__cluster__removed_at=None)
    return rows.select_related("node__cluster", "card__node").order_by("-id")


def isolations_shown() -> QuerySet[Isolation]:
    """All that there were, the newest first."""
    rows = Isolation.objects.filter(node__removed_at=None, node__cluster__removed_at=None)
    return rows.select_related("node__cluster", "card__node", "fault").order_by("-id")


class Entry(StrEnum):
    FAULT = "fault"
    FAULT_ENDED = "fault_ended"
    DECISION = "decision"
    ISOLATED = "isolated"
    ISOLATION = "isolation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """One thing that happened to a card."""

    at: datetime
    entry: Entry
    #: The row that tells of it.
    row: Fault | Decision | Isolation | IsolationTransition


def card_timeline(card: Card) -> list[Happened]:
    """What was wrong with it or with its node, what was decided and done; the newest first."""
    concerns = Q(card=card) | Q(node=card.node_id, card=None)
    happened = [
        *_faults(Fault.objects.filter(concerns).order_by("-began_at")[:_MOST]),
        *_decisions(Decision.objects.filter(concerns).order_by("-at")[:_MOST]),
        *_isolations(Isolation.objects.filter(concerns).order_by("-began_at")[:_MOST]),
    ]
    return sorted(happened, key=lambda one: one.at, reverse=True)


def _faults(rows: QuerySet[Fault]) -> Iterator[Happened]:
    for row in rows:
        yield Happened(at=row.began_at, entry=Entry.FAULT, row=row)
        if row.ended_at is not None:
            yield Happened(at=row.ended_at, entry=Entry.FAULT_ENDED, row=row)


def _decisions(rows: QuerySet[Decision]) -> Iterator[Happened]:
    for row in rows:
        yield Happened(at=row.at, entry=Entry.DECISION, row=row)


def _isolations(rows: QuerySet[Isolation]) -> Iterator[Happened]:
    for row in rows.prefetch_related("history"):
        yield Happened(at=row.began_at, entry=Entry.ISOLATED, row=row)
        for step in row.history.all():
            yield Happened(at=step.at, entry=Entry.ISOLATION, row=step)
