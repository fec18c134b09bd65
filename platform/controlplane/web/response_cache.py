"""A cache of one computed value with a maximum age."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class TimedCache(Generic[Value]):
    """Caches the result of ``compute`` for ``seconds``; one per process."""

    def __init__(
        self,
        compute: Callable[[], Value],
        *,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._compute = compute
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._cached: tuple[float, Value] | None = None

    def __call__(self) -> Value:
        # Concurrent callers wait for one computation.
        with self._lock:
            if self._cached is None or self._clock() >= self._cached[0]:
                value = self._compute()
                self._cached = (self._clock() + self._seconds, value)
            return self._cached[1]
