"""Whether a queue takes new claims."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from apps.quotas.models import Queue
from controlplane.domain.queues import QueueState


class _Row(NamedTuple):
    pk: int
    name: str
    parent: int | None
    state: str


def intake_refusal(queue: Queue) -> str:
    """Why the queue, or one above it, takes no new claim now, in words; empty where it takes them."""
    return intake_refusal_of_any((queue,))


def intake_refusal_of_any(queues: Iterable[Queue]) -> str:
    """Why one of the queues, or one above it, takes no new claim now, in words; empty where all take them."""
    alive = Queue.objects.filter(retired_at=None).values_list("pk", "name", "parent", "state")
    rows = {row.pk: row for row in map(_Row._make, alive)}
    above = {row.parent for row in rows.values()}
    reasons = (_refusal(queue, rows, above) for queue in queues)
    return next(filter(None, reasons), "")


def _refusal(
    queue: Queue, rows: Mapping[int, _Row], with_others_below: Collection[int | None]
) -> str:
    if queue.pk not in rows:
        return f"queue {queue.name} does not exist any more; choose another"
    if queue.pk in with_others_below:
        return f"queue {queue.name} has queues below it; choose one of those"
    seen: set[int] = set()
    above: int | None = queue.pk
    while above is not None and above in rows and above not in seen:
        seen.add(above)
        row = rows[above]
        if row.state == QueueState.DRAINING:
            return f"queue {row.name} is being drained and takes nothing new; choose another"
        if row.state == QueueState.CLOSED:
            return f"queue {row.name} is closed and takes nothing new; choose another"
        above = row.parent
    return ""
