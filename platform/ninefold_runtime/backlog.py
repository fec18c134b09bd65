"""Points of progress that wait to be sent: bounded, thinned out rather than cut off.

While the control plane is away a long run would pile up points without end. Above the limit every second
plain point of the older half goes: the curve stays whole and loses detail. Checkpoints and evaluations
are few and stay longest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Point = dict[str, Any]

_PRECIOUS = frozenset({"checkpoint", "eval_loss"})


class Backlog:
    """A bounded queue of points in the order in which they came."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._points: list[Point] = []

    def __len__(self) -> int:
        return len(self._points)

    def add(self, point: Point) -> None:
        self._points.append(point)
        self._shrink()

    def take(self, count: int) -> list[Point]:
        """Remove and return up to ``count`` of the oldest."""
        taken, self._points = self._points[:count], self._points[count:]
        return taken

    def put_back(self, points: Iterable[Point]) -> None:
        """Return what could not be sent to the front."""
        self._points[:0] = points
        self._shrink()

    def _shrink(self) -> None:
        if len(self._points) <= self._limit:
            return
        middle = len(self._points) // 2
        older, newer = self._points[:middle], self._points[middle:]
        plain = 0
        kept = []
        for point in older:
            precious = not _PRECIOUS.isdisjoint(point)
            plain += not precious
            if precious or plain % 2:
                kept.append(point)
        self._points = (kept + newer)[-self._limit :]
