"""Allocated cards: by queue over time beside the quota at that time, by team on a node, and free cards by chip."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Count, Q, QuerySet

from apps.fleet.models import Card, Node
from apps.quotas.models import Allocation, Queue, QueueChange
from apps.quotas.selectors.queues import capacity_by_chip
from controlplane.domain.quotas.queue_documents import queue_document_from_json
from controlplane.domain.quotas.queues import TOTAL, ChipQuota
from controlplane.persistence.transactions import fetch_rows


class AllocationWindow(StrEnum):
    """Time range of a usage chart, and the length of its steps."""

    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"

    @property
    def step(self) -> timedelta:
        return timedelta(minutes={"24h": 5, "7d": 30, "30d": 120}[self.value])

    @property
    def length(self) -> timedelta:
        return timedelta(days={"24h": 1, "7d": 7, "30d": 30}[self.value])


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOccupancy:
    """Usage and quota of a queue, one value per step; None before the queue existed."""

    #: Start of each step.
    starts: tuple[datetime, ...]
    #: Average of allocated cards over the step.
    used: tuple[float | None, ...]
    guaranteed: tuple[int | None, ...]
    #: None also for no limit.
    cap: tuple[int | None, ...]


#: Each allocation is two edges; a step's average is the allocation at its start, plus each edge within it
#: weighted by the remaining part of the step.
_EDGES = """
    WITH held AS (
        SELECT GREATEST(a.allocated_at, %(since)s) AS since, LEAST(a.released_at, %(until)s) AS until
          FROM quotas_allocation a JOIN quotas_claim c ON c.id = a.claim_id
         WHERE c.queue_id = ANY(%(queues)s) AND (%(chip)s = '' OR c.chip = %(chip)s)
           AND a.allocated_at < %(until)s
           AND (a.released_at IS NULL OR a.released_at > %(since)s)
    ), edges AS (
        SELECT EXTRACT(EPOCH FROM since - %(since)s)::float8 AS at, 1 AS cards FROM held
        UNION ALL
        SELECT EXTRACT(EPOCH FROM until - %(since)s)::float8, -1 FROM held WHERE until < %(until)s
    )
    SELECT FLOOR(at / %(step)s)::int AS step, SUM(cards),
           SUM(cards * (1 - (at / %(step)s - FLOOR(at / %(step)s))))
      FROM edges GROUP BY 1
"""


def queue_occupancy(
    queue: Queue, *, below: Collection[int], chip: str, window: AllocationWindow, at: datetime
) -> QueueOccupancy:
    """Usage of the queue and those below of the chip (``TOTAL``: all chips) until now.

    :param below: primary keys of the queue and of those below it.
    """
    steps = window.length // window.step
    # Aligned to whole steps, so that consecutive queries give the same points.
    seconds = window.step.total_seconds()
    until = datetime.fromtimestamp((at.timestamp() // seconds + 1) * seconds, tz=at.tzinfo)
    since = until - steps * window.step
    starts = tuple(since + step * window.step for step in range(steps))
    used = _average_allocations(below, chip, since=since, until=at, steps=starts, step=window.step)
    configured = _entitlement_history(queue, chip, starts=starts)
    known = [start + window.step > queue.created_at for start in starts]
    return QueueOccupancy(
        starts=starts,
        used=tuple(value if exists else None for value, exists in zip(used, known, strict=True)),
        guaranteed=tuple(
            one.guaranteed if exists else None
            for one, exists in zip(configured, known, strict=True)
        ),
        cap=tuple(
            one.cap if exists else None for one, exists in zip(configured, known, strict=True)
        ),
    )


def _average_allocations(
    queues: Collection[int],
    chip: str,
    *,
    since: datetime,
    until: datetime,
    steps: Sequence[datetime],
    step: timedelta,
) -> list[float]:
    asked: dict[str, list[int] | str | datetime | float] = {
        "queues": list(queues),
        "chip": chip,
        "since": since,
        "until": until,
        "step": step.total_seconds(),
    }
    edges = {row[0]: (int(row[1]), float(row[2])) for row in fetch_rows(_EDGES, asked)}
    averages, level = [], 0
    for number in range(len(steps)):
        change, part = edges.get(number, (0, 0.0))
        averages.append(round(level + part, 3))
        level += change
    return averages


def _entitlement_history(queue: Queue, chip: str, *, starts: Sequence[datetime]) -> list[ChipQuota]:
    """The queue's entitlement for the chip at the start of each step, from the history of the tree."""
    now = queue.entitlements.filter(chip=chip).first()
    configured = now.quota if now else ChipQuota()
    # Backwards from now: each change stores the state before it.
    changes = list(queue_changes(queue).filter(created_at__gt=starts[0]).order_by("-id"))
    values = []
    for start in reversed(starts):
        while changes and changes[0].created_at > start:
            before = changes.pop(0).before.get(queue.uid)
            configured = (
                queue_document_from_json(before).entitlement(chip) if before else ChipQuota()
            )
        values.append(configured)
    return values[::-1]


def queue_changes(queue: Queue) -> QuerySet[QueueChange]:
    """Changes of the tree that affect the queue, newest first."""
    touched = Q(before__has_key=queue.uid) | Q(after__has_key=queue.uid)
    return QueueChange.objects.filter(touched).select_related("actor", "reverts")


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamUsage:
    """Workloads and cards of one team on a node or card."""

    team: str
    workloads: int
    cards: int


def usage_by_team(node: Node, *, card: Card | None = None) -> list[TeamUsage]:
    """Usage of the node, or only of that card and its slices, by team name."""
    rows = Allocation.objects.filter(node=node, released_at=None)
    if card is not None:
        rows = rows.filter(Q(card=card) | Q(card__parent=card))
    counted = rows.values("claim__team__name").annotate(
        workloads=Count("claim", distinct=True), cards=Count("id")
    )
    return [
        TeamUsage(team=row["claim__team__name"], workloads=row["workloads"], cards=row["cards"])
        for row in counted.order_by("claim__team__name")
    ]


def count_free_cards() -> dict[str, int]:
    """Free usable cards by chip; 0 for a chip of the fleet without any."""
    return {chip: cards.free for chip, cards in capacity_by_chip().items() if chip != TOTAL}
