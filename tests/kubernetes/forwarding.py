"""A way from pods to a server that listens on loopback alone: the bridge of the pods leads to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CHUNK = 1 << 16


@contextmanager
def forwarded(address: str, *, port: int) -> Iterator[int]:
    """The port on ``address`` that leads to ``port`` on loopback for as long as the block lasts."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="forwarding", daemon=True)
    thread.start()
    try:
        opening = asyncio.run_coroutine_threadsafe(_serve(address, port), loop)
        server = opening.result(10)
        yield int(server.sockets[0].getsockname()[1])
        asyncio.run_coroutine_threadsafe(_close(server), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _serve(address: str, port: int) -> asyncio.Server:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_copy(reader, back), _copy(there, writer))

    return await asyncio.start_server(handle, address, 0)


async def _close(server: asyncio.Server) -> None:
    server.close()
    own = asyncio.current_task()
    rest = [task for task in asyncio.all_tasks() if task is not own]
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while content := await reader.read(_CHUNK):
            writer.write(content)
            await writer.drain()
    with suppress(ConnectionError, RuntimeError):
        writer.close()
