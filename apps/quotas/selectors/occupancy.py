"""Cards that queues held over time, from the allocations themselves, beside what was stated for them then."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import connection
from django.db.models import Q, QuerySet

from apps.quotas.models import Queue, QueueChange
from controlplane.domain.queue_documents import from_json
from controlplane.domain.quotas import Entitlement


class Window(StrEnum):
    """How far back one looks, and in steps of what length."""

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
class Occupancy:
    """One value for each step; None before there was the queue."""

    #: When each step begins.
    starts: tuple[datetime, ...]
    #: Cards held on average over the step.
    used: tuple[float | None, ...]
    guaranteed: tuple[int | None, ...]
    #: None: no limit, too.
    cap: tuple[int | None, ...]


#: Each allocation is two edges; a step's average is what was held when it began, and of each edge within it
#: the part of the step that is left.
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


def occupancy_of(
    queue: Queue, *, below: Collection[int], chip: str, window: Window, at: datetime
) -> Occupancy:
    """What the queue and those below held of the chip (``TOTAL``: of all) until now.

    :param below: primary keys of the queue and of those below it.
    """
    steps = window.length // window.step
    # On whole steps, so that two looks one after the other draw the same points.
    seconds = window.step.total_seconds()
    until = datetime.fromtimestamp((at.timestamp() // seconds + 1) * seconds, tz=at.tzinfo)
    since = until - steps * window.step
    starts = tuple(since + step * window.step for step in range(steps))
    used = _averages(below, chip, since=since, until=at, steps=starts, step=window.step)
    stated = _stated(queue, chip, starts=starts)
    known = [start + window.step > queue.created_at for start in starts]
    return Occupancy(
        starts=starts,
        used=tuple(value if there else None for value, there in zip(used, known, strict=True)),
        guaranteed=tuple(
            one.guaranteed if there else None for one, there in zip(stated, known, strict=True)
        ),
        cap=tuple(one.cap if there else None for one, there in zip(stated, known, strict=True)),
    )


def _averages(
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
    with connection.cursor() as cursor:
        cursor.execute(_EDGES, asked)
        edges = {row[0]: (int(row[1]), float(row[2])) for row in cursor.fetchall()}
    averages, level = [], 0
    for number in range(len(steps)):
        change, part = edges.get(number, (0, 0.0))
        averages.append(round(level + part, 3))
        level += change
    return averages


def _stated(queue: Queue, chip: str, *, starts: Sequence[datetime]) -> list[Entitlement]:
    """What it stated for the chip at the beginning of each step, from the history of the tree."""
    now = queue.entitlements.filter(chip=chip).first()
    stated = (
        Entitlement(reserved=now.reserved, guaranteed=now.guaranteed, cap=now.cap)
        if now
        else Entitlement()
    )
    # From now back: each change says what was before it.
    changes = list(changes_of(queue).filter(created_at__gt=starts[0]).order_by("-id"))
    values = []
    for start in reversed(starts):
        while changes and changes[0].created_at > start:
            before = changes.pop(0).before.get(queue.uid)
            stated = from_json(before).entitlement(chip) if before else Entitlement()
        values.append(stated)
    return values[::-1]


def changes_of(queue: Queue) -> QuerySet[QueueChange]:
    """Changes of the tree that touched the queue, the newest first."""
    touched = Q(before__has_key=queue.uid) | Q(after__has_key=queue.uid)
    return QueueChange.objects.filter(touched).select_related("actor", "reverts")
