"""Queries on faults and isolations: for lists, one card or node, and the cards and nodes that a job ran on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from django.db.models import Case, Count, OuterRef, Q, QuerySet, Subquery, When, Window

from apps.fleet.models import Card, Node
from apps.jobs.models import Attempt, Job, ProgressPoint
from apps.monitoring.models import Decision, Fault, Isolation, IsolationTransition
from apps.quotas.models import Allocation
from apps.telemetry.selectors import REACHES, ChartRange
from controlplane.domain.health.faults import FaultLevel, FaultMeaning
from controlplane.ports import adapter_registry

#: Entries of each kind in a card's timeline.
_MOST = 100


def faults_newest_first() -> QuerySet[Fault]:
    """All that there were, the newest first."""
    rows = Fault.objects.filter(node__removed_at=None, node__cluster__removed_at=None)
    return rows.select_related("node__cluster", "card__node").order_by("-id")


def isolations_newest_first() -> QuerySet[Isolation]:
    """All that there were, the newest first."""
    rows = Isolation.objects.filter(node__removed_at=None, node__cluster__removed_at=None)
    return rows.select_related("node__cluster", "card__node", "fault").order_by("-id")


class TimelineEntryKind(StrEnum):
    FAULT = "fault"
    FAULT_ENDED = "fault_ended"
    DECISION = "decision"
    ISOLATED = "isolated"
    ISOLATION = "isolation"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One thing that happened to a card."""

    at: datetime
    entry: TimelineEntryKind
    #: The row of the event.
    row: Fault | Decision | Isolation | IsolationTransition


def card_timeline(card: Card) -> list[TimelineEntry]:
    """What was wrong with it or with its node, what was decided and done; the newest first."""
    concerns = Q(card=card) | Q(node=card.node_id, card=None)
    happened = [
        *_fault_timeline_entries(Fault.objects.filter(concerns).order_by("-began_at")[:_MOST]),
        *_decision_timeline_entries(Decision.objects.filter(concerns).order_by("-at")[:_MOST]),
        *_isolation_timeline_entries(
            Isolation.objects.filter(concerns).order_by("-began_at")[:_MOST]
        ),
    ]
    return sorted(happened, key=lambda one: one.at, reverse=True)


def _fault_timeline_entries(rows: QuerySet[Fault]) -> Iterator[TimelineEntry]:
    for row in rows:
        yield TimelineEntry(at=row.began_at, entry=TimelineEntryKind.FAULT, row=row)
        if row.ended_at is not None:
            yield TimelineEntry(at=row.ended_at, entry=TimelineEntryKind.FAULT_ENDED, row=row)


def _decision_timeline_entries(rows: QuerySet[Decision]) -> Iterator[TimelineEntry]:
    for row in rows:
        yield TimelineEntry(at=row.at, entry=TimelineEntryKind.DECISION, row=row)


def _isolation_timeline_entries(rows: QuerySet[Isolation]) -> Iterator[TimelineEntry]:
    for row in rows.prefetch_related("history"):
        yield TimelineEntry(at=row.began_at, entry=TimelineEntryKind.ISOLATED, row=row)
        for step in row.history.all():
            yield TimelineEntry(at=step.at, entry=TimelineEntryKind.ISOLATION, row=step)


def open_faults() -> QuerySet[Fault]:
    """Open faults above the lowest level, most severe first."""
    rows = faults_newest_first().filter(ended_at=None, level__gt=FaultLevel.NOTE)
    return rows.order_by("-level", "-id")


class WorstOpenFaults(NamedTuple):
    faults: Sequence[Fault]
    #: Number of open faults.
    standing: int


def worst_open_faults(*, most: int) -> WorstOpenFaults:
    """The most severe open, unacknowledged faults, and the number of open faults."""
    rows = open_faults().annotate(standing=Window(Count("pk")))
    # Acknowledged ones come last, so that one statement returns both.
    read = Case(When(acknowledged_at=None, then=0), default=1)
    found = list(rows.order_by(read, "-level", "-id")[:most])
    return WorstOpenFaults(
        faults=[fault for fault in found if fault.acknowledged_at is None],
        standing=found[0].standing if found else 0,
    )


def faults_of_node(node: Node) -> list[Fault]:
    """Open faults of the node and of its cards, most severe first."""
    return list(faults_newest_first().filter(node=node, ended_at=None).order_by("-level", "-id"))


def faults_of_card(card: Card) -> QuerySet[Fault]:
    """All faults of the card, and open ones of its node."""
    own = Q(card=card) | Q(node=card.node_id, card=None, ended_at=None)
    return faults_newest_first().filter(own)


class FaultLocation(NamedTuple):
    """Primary keys; of the node as a whole where there is no card."""

    node: int
    card: int | None


def isolations_by_location(nodes: Collection[int]) -> Mapping[FaultLocation, Isolation]:
    """Open isolations on those nodes, given by primary key."""
    rows = Isolation.objects.filter(node__in=nodes, ended_at=None).select_related("fault")
    return {FaultLocation(row.node_id, row.card_id): row for row in rows}


def isolations_by_fault(faults: Collection[Fault]) -> Mapping[int, Isolation]:
    """By primary key of the fault, the open isolation of its card, or of the whole node."""
    by_place = isolations_by_location({fault.node_id for fault in faults})
    found = {}
    for fault in faults:
        places = (FaultLocation(fault.node_id, fault.card_id), FaultLocation(fault.node_id, None))
        isolation = next((by_place[place] for place in places if place in by_place), None)
        if isolation is not None:
            found[fault.pk] = isolation
    return found


@lru_cache(maxsize=4096)
def fault_meaning(vendor: str, code: str) -> FaultMeaning | None:
    """Meaning of a vendor's code; None if the code belongs to no vendor."""
    plugin = adapter_registry.chip_plugins().get(vendor)
    return plugin.profile().faults.meaning(code) if plugin else None


#: More marks than these hide the lines.
MAX_MARKERS = 40


def chart_fault_markers(card: Card, *, reach: ChartRange, at: datetime) -> Sequence[Fault]:
    """What began to be wrong with it in that time, notes left out, the newest first."""
    rows = Fault.objects.filter(
        card=card, level__gt=FaultLevel.NOTE, began_at__gte=at - REACHES[reach].back
    )
    rows = rows.select_related("node__cluster", "card__node")
    return list(rows.order_by("-began_at")[:MAX_MARKERS])


class JobFault(NamedTuple):
    fault: Fault
    #: The newest step that had been reported when the fault began; the first one if none had been.
    step: int


def job_faults(job: Job, *, attempts: int, limit: int, at: datetime) -> Sequence[JobFault]:
    """Faults of cards and nodes that began while an attempt of the job had them; the oldest first.

    An attempt counts until it ends, after the release of its cards, so that the fault of a crash belongs to it.

    :param attempts: number of newest attempts that count.
    :param limit: maximum number of faults; the newest ones are returned.
    """
    newest = job.attempts.exclude(claim_uid="").order_by("-number")[:attempts]
    during = _during_attempts(list(newest), at=at)
    if not during:
        return []
    points = ProgressPoint.objects.filter(attempt__job=job)
    reported = points.filter(at__lte=OuterRef("began_at")).order_by("-at", "-step")
    rows = (
        Fault.objects.filter(during, level__gt=FaultLevel.NOTE)
        .select_related("node__cluster", "card__node")
        .annotate(step=Subquery(reported.values("step")[:1]))
        .order_by("-began_at", "-id")[:limit]
    )
    faults = list(reversed(rows))
    first = points.order_by("attempt__number", "step").values_list("step", flat=True).first()
    if not faults or first is None:
        return []
    return [JobFault(row, first if row.step is None else row.step) for row in faults]


def _during_attempts(attempts: Sequence[Attempt], *, at: datetime) -> Q:
    """Faults that began on cards or nodes of one of the attempts, from its allocation to its end or ``at``."""
    by_claim = {attempt.claim_uid: attempt for attempt in attempts}
    places: dict[str, tuple[set[int], set[int], datetime]] = {}
    allocations = Allocation.objects.filter(claim__uid__in=by_claim)
    for claim, card, node, since in allocations.values_list(
        "claim__uid", "card_id", "node_id", "allocated_at"
    ):
        cards, nodes, begin = places.setdefault(claim, (set(), set(), since))
        cards.add(card)
        nodes.add(node)
        places[claim] = (cards, nodes, min(begin, since))
    chosen = Q()
    for claim, (cards, nodes, since) in places.items():
        concerned = Q(card__in=cards) | Q(card=None, node__in=nodes)
        until = by_claim[claim].ended_at or at
        chosen |= concerned & Q(began_at__gte=since, began_at__lte=until)
    return chosen
