"""Batches that wait to be sent: bounded, since the control plane may be away for days."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from ninefold_runtime.agent.batches import Batch


@dataclass(slots=True, kw_only=True, eq=False)
class Waiting:
    """A batch and the number that it has each time that it is sent."""

    number: int
    batch: Batch
    #: How often the control plane failed on it, and when it may be sent again, by the monotonic clock.
    failures: int = 0
    not_before: float = 0.0


class Backlog:
    """The newest ``limit`` batches, in the order of their numbers.

    Not for several threads without a lock around it.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._all: deque[Waiting] = deque()
        #: How many were given up because newer ones came.
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._all)

    def add(self, waiting: Waiting) -> None:
        if len(self._all) >= self._limit:
            self._all.popleft()
            self.dropped += 1
        self._all.append(waiting)

    def newest(self, *, now: float) -> Waiting:
        """The newest that may be sent now; where none may, the one that may be soonest.

        :raises ValueError: if there is none.
        """
        for waiting in reversed(self._all):
            if waiting.not_before <= now:
                return waiting
        return min(self._all, key=lambda waiting: waiting.not_before)

    def settle(self, waiting: Waiting) -> None:
        """Take it out if it is still there: while it was under way it may have been given up."""
        if waiting in self._all:
            self._all.remove(waiting)

    def settle_until(self, at: datetime) -> int:
        """Take out all that were measured until then; how many those were."""
        kept = [waiting for waiting in self._all if waiting.batch.at > at]
        count = len(self._all) - len(kept)
        self._all = deque(kept)
        return count

    def renumber(self, number: Callable[[], int]) -> None:
        """Give each another number, in their order."""
        for waiting in self._all:
            waiting.number = number()
