"""How good forecasts were, against the simplest forecast there is: the queue's median wait so far."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heappop, heappush


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """A claim that started, and when that had been foretold."""

    queue: str
    submitted_at: datetime
    started_at: datetime
    #: As foretold when it was submitted.
    foretold: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Mean absolute errors over the same claims."""

    claims: int
    forecast: timedelta
    #: Of taking the median wait of those of the queue that had started before the claim was submitted.
    median_wait: timedelta

    @property
    def ratio(self) -> float:
        """Below 1 the forecast is the better of the two; 0 where neither erred."""
        if not self.median_wait:
            return 1.0 if self.forecast else 0.0
        return self.forecast / self.median_wait


def accuracy(waits: Iterable[Waited]) -> Accuracy:
    """Both errors over all claims whose queue had a past.

    :raises ValueError: if no claim had one.
    """
    forecast = baseline = timedelta(0)
    claims = 0
    past: dict[str, list[float]] = {}
    #: Of each queue those that were submitted but had not started yet.
    started: dict[str, list[tuple[datetime, float]]] = {}
    for each in sorted(waits, key=lambda each: (each.submitted_at, each.started_at)):
        known, pending = past.setdefault(each.queue, []), started.setdefault(each.queue, [])
        while pending and pending[0][0] <= each.submitted_at:
            insort(known, heappop(pending)[1])
        wait = each.started_at - each.submitted_at
        heappush(pending, (each.started_at, wait.total_seconds()))
        if known:
            claims += 1
            forecast += abs(each.foretold - each.started_at)
            baseline += abs(timedelta(seconds=known[len(known) // 2]) - wait)
    if not claims:
        raise ValueError("no claim was submitted after another of its queue had started")
    return Accuracy(claims=claims, forecast=forecast / claims, median_wait=baseline / claims)
