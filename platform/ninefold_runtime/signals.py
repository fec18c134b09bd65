"""SIGTERM, turned into a decision.

Where nothing can be saved the task ends at once; inside ``deferred()`` the request is only remembered,
and whoever runs there looks at ``requested`` at the next point where saving makes sense.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from ninefold_runtime.exits import Stopped


class StopRequest:
    """Whether this process was asked to end."""

    def __init__(self) -> None:
        self.requested = False
        self._deferred = False

    def listen(self) -> None:
        """Take over SIGTERM and SIGINT; only the main thread may call it."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Inside, a request is remembered rather than raised.

        :raises Stopped: on entry, if the request came before.
        """
        if self.requested:
            raise Stopped("stopped before it began")
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False

    def _on_signal(self, number: int, _frame: object) -> None:
        first = not self.requested
        self.requested = True
        if first and not self._deferred:
            raise Stopped(f"stopped by {signal.Signals(number).name}")
