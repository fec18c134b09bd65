"""Batches that wait to be sent: bounded, since the control plane may be away for days."""

from __future__ import annotations

from collections import deque

from ninefold_runtime.agent.batches import Batch


class Backlog:
    """The newest ``limit`` batches, the oldest first. Not for several threads without a lock around it."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._batches: deque[Batch] = deque()
        #: How many were given up because newer ones came.
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._batches)

    def add(self, batch: Batch) -> None:
        if len(self._batches) >= self._limit:
            self._batches.popleft()
            self.dropped += 1
        self._batches.append(batch)

    def oldest(self) -> Batch:
        """:raises IndexError: if there is none."""
        return self._batches[0]

    def settle(self, batch: Batch) -> None:
        """Take out the oldest if it is that one: while it was under way it may have been given up."""
        if self._batches and self._batches[0] is batch:
            self._batches.popleft()
