"""An aiohttp server in a thread of its own, so that tests stay plain functions."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from threading import Thread
from typing import Any, Self, TypeVar

from aiohttp import web

T = TypeVar("T")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(condition: Callable[[], T], *, seconds: float = 10.0, what: str) -> T:
    """The condition's first true value; fails the test after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(0.01)
    return value


class ThreadedServer:
    """Serves :meth:`routes` on a free port of the loopback from ``start`` to ``stop``."""

    def __init__(self) -> None:
        self.port = free_port()
        self._event_loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._event_loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None

    def routes(self) -> list[web.RouteDef]:
        raise NotImplementedError

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._event_loop).result(timeout=10)

    def start(self) -> Self:
        self._thread.start()
        self.run(self._listen())
        return self

    async def _listen(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes(self.routes())
        # A client that disconnects cancels its handler, as in real engines.
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    @property
    def open_connections(self) -> int:
        """Connections of clients, idle ones included."""
        server = self._runner.server if self._runner is not None else None
        return len(server.connections) if server is not None else 0

    def disconnect(self) -> None:
        """Stop listening and drop every connection."""
        if self._runner is not None:
            self.run(self._runner.cleanup())
            self._runner = None

    def reconnect(self) -> None:
        self.run(self._listen())

    def stop(self) -> None:
        self.disconnect()
        self._event_loop.call_soon_threadsafe(self._event_loop.stop)
        self._thread.join(timeout=10)
        self._event_loop.close()
