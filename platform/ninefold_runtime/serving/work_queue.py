"""The one thread that computes, and the bounded queue before it.

One request runs at a time: on one card a second one would only make the first slower, and what is fair
between them is the queue's order.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from ninefold_runtime.serving.asgi import AsgiRequest, HttpDisconnected
from ninefold_runtime.serving.request_fields import RequestRejected

T = TypeVar("T")


class QueueFull(Exception):
    """As many requests wait as may."""


@dataclass(eq=False, slots=True, kw_only=True)
class _Task:
    run: Callable[[], None]
    cancelled: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class _Result:
    """A value that the work emitted."""

    value: object


class _Disconnected:
    """The client has left."""


class _Ended:
    """The work has returned."""


_Outcome = _Result | _Disconnected | _Ended | RequestRejected


class WorkQueue:
    """Runs work in one thread, in the order of its submission."""

    def __init__(self, *, size: int) -> None:
        self._size = size
        self._waiting: deque[_Task] = deque()
        self._running: _Task | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._run_until_stopped, name="inference", daemon=True).start()

    def submit(
        self,
        work: Callable[[Callable[[T], None], threading.Event], None],
        *,
        request: AsgiRequest,
    ) -> AsyncGenerator[T, None]:
        """The values that the work emits, as they come.

        ``work(emit, cancelled)`` is called in the queue's thread. ``cancelled`` is set when the client
        leaves or the caller stops reading, and work that has not begun is dropped then.

        :raises QueueFull: at once, if too many requests wait.
        :raises HttpDisconnected: from the iteration, when the client has left.
        :raises RequestRejected: from the iteration, if the work failed.
        """
        event_loop = asyncio.get_running_loop()
        outcomes: asyncio.Queue[_Outcome] = asyncio.Queue()

        def put(outcome: _Outcome) -> None:
            # A loop that has closed has no readers left.
            if not event_loop.is_closed():
                event_loop.call_soon_threadsafe(outcomes.put_nowait, outcome)

        def run() -> None:
            try:
                work(lambda value: put(_Result(value)), task.cancelled)
            except RequestRejected as rejected:
                put(rejected)
            except Exception as error:  # noqa: BLE001 - one request must not end the process
                traceback.print_exc(file=sys.stderr)
                put(
                    RequestRejected(
                        f"inference failed: {type(error).__name__}", status=500, kind="server_error"
                    )
                )
            else:
                put(_Ended())

        task = _Task(run=run)
        with self._changed:
            if len(self._waiting) >= self._size and self._running is not None:
                raise QueueFull(f"{len(self._waiting)} requests wait already")
            self._waiting.append(task)
            self._changed.notify()
        return self._results(task, outcomes, request=request)

    async def run(self, work: Callable[[threading.Event], T], *, request: AsgiRequest) -> T:
        """What the work returns. Raises as ``submit`` does."""

        def emit_result(emit: Callable[[T], None], cancelled: threading.Event) -> None:
            emit(work(cancelled))

        async with aclosing(self.submit(emit_result, request=request)) as results:
            return await anext(results)

    def load(self) -> tuple[int, int]:
        """Requests that run, and that wait."""
        with self._changed:
            return int(self._running is not None), len(self._waiting)

    async def _results(
        self, task: _Task, outcomes: asyncio.Queue[_Outcome], *, request: AsgiRequest
    ) -> AsyncGenerator[T, None]:
        departure = asyncio.ensure_future(request.disconnected())
        departure.add_done_callback(lambda _: outcomes.put_nowait(_Disconnected()))
        try:
            while True:
                outcome = await outcomes.get()
                if isinstance(outcome, _Result):
                    yield outcome.value  # type: ignore[misc]
                elif isinstance(outcome, RequestRejected):
                    raise outcome
                elif isinstance(outcome, _Disconnected):
                    raise HttpDisconnected
                else:
                    return
        finally:
            departure.cancel()
            self._cancel(task)

    def _cancel(self, task: _Task) -> None:
        task.cancelled.set()
        with self._changed:
            if task in self._waiting:
                self._waiting.remove(task)

    def _run_until_stopped(self) -> None:
        while True:
            with self._changed:
                self._running = None
                self._changed.wait_for(lambda: bool(self._waiting))
                task = self._running = self._waiting.popleft()
            task.run()
