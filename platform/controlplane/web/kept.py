"""Answers that may be a little old, so that asking often costs nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """What ``make`` returned, made anew when it is older than ``seconds``; one for each process."""

    def __init__(
        self,
        make: Callable[[], Value],
        *,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, Value] | None = None

    def __call__(self) -> Value:
        # Whoever comes while somebody makes it waits for that one instead of making it again.
        with self._lock:
            if self._kept is None or self._clock() >= self._kept[0]:
                value = self._make()
                self._kept = (self._clock() + self._seconds, value)
            return self._kept[1]

    def forget(self) -> None:
        """Make it anew the next time."""
        with self._lock:
            self._kept = None
