"""The history of a card: faults, decisions, isolations and the workloads that it ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from heapq import nlargest

from apps.accounts import selectors as accounts
from apps.fleet.models import Card
from apps.monitoring.models import Decision, Fault, Isolation, IsolationTransition
from apps.monitoring.selectors.faults import TimelineEntryKind, card_timeline
from apps.quotas.models import Allocation, Queue
from apps.quotas.selectors.queues import QueueVisibility, queue_visibility_of
from controlplane.domain.health.isolations import IsolationState


class HistoryPeriod(StrEnum):
    FAULT = "fault"
    FAULT_OVER = "fault_over"
    DECIDED = "decided"
    ISOLATION = "isolation"
    WORK = "work"
    WORK_ENDED = "work_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardHistoryEvent:
    """One line of a card's history."""

    at: datetime
    what: HistoryPeriod
    fault: Fault | None = None
    decision: Decision | None = None
    #: The state it came to, why, and who did it (empty: a rule).
    state: str = ""
    reason: str = ""
    actor: str = ""
    work: CardHistoryEntry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardHistoryEntry:
    """What held the card from one moment to another."""

    #: ``job`` or ``deployment``; uid and name are empty if they are not visible to the reader.
    kind: str
    uid: str
    name: str
    team: str
    queue: str
    cards: int
    began_at: datetime
    #: None: it holds it now.
    ended_at: datetime | None
    #: Code of the reason why it was released; empty while it is allocated.
    ended_by: str


def card_history_entries(
    card: Card, user: accounts.RequestUser, *, most: int
) -> Sequence[CardHistoryEntry]:
    """Latest allocations of the card, as far as they are visible to the user."""
    rows = list(
        Allocation.objects.filter(card=card)
        .select_related("claim__team", "claim__queue")
        .order_by("-allocated_at")[:most]
    )
    if not rows:
        return []
    visibility = queue_visibility_of(user, Queue.objects.order_by("name"))
    return [_allocation_entry(row, visibility) for row in rows]


def _allocation_entry(row: Allocation, visibility: QueueVisibility) -> CardHistoryEntry:
    claim = row.claim
    named = visibility.can_name(claim)
    return CardHistoryEntry(
        kind=claim.work_kind,
        uid=claim.work_uid if named else "",
        name=claim.work_name if named else "",
        team=claim.team.name,
        queue=claim.queue.name,
        cards=claim.card_count,
        began_at=row.allocated_at,
        ended_at=row.released_at,
        ended_by=claim.release_reason if row.released_at else "",
    )


def card_history_events(
    card: Card, *, work: Sequence[CardHistoryEntry], most: int
) -> Sequence[CardHistoryEvent]:
    """The newest of all that happened, newest first."""
    found = [
        _history_event(one.at, one.row, entry=one.entry, card=card) for one in card_timeline(card)
    ]
    return nlargest(most, [*found, *_merge_allocations(work)], key=lambda one: one.at)


def _history_event(
    at: datetime,
    row: Fault | Decision | Isolation | IsolationTransition,
    *,
    entry: TimelineEntryKind,
    card: Card,
) -> CardHistoryEvent:
    if isinstance(row, Fault):
        # All of them belong to this card or its node, which are known.
        row.node, row.card = card.node, card if row.card_id else None
        what = HistoryPeriod.FAULT if entry is TimelineEntryKind.FAULT else HistoryPeriod.FAULT_OVER
        return CardHistoryEvent(at=at, what=what, fault=row)
    if isinstance(row, Decision):
        return CardHistoryEvent(
            at=at, what=HistoryPeriod.DECIDED, decision=row, reason=row.reason, actor=row.actor_name
        )
    if isinstance(row, Isolation):
        state, actor = IsolationState.DRAINING.value, row.actor_name
    else:
        state, actor = row.to_state, row.actor
    return CardHistoryEvent(
        at=at, what=HistoryPeriod.ISOLATION, state=state, reason=row.reason, actor=actor
    )


def _merge_allocations(work: Sequence[CardHistoryEntry]) -> Iterator[CardHistoryEvent]:
    for one in work:
        yield CardHistoryEvent(at=one.began_at, what=HistoryPeriod.WORK, work=one)
        if one.ended_at is not None:
            yield CardHistoryEvent(at=one.ended_at, what=HistoryPeriod.WORK_ENDED, work=one)
