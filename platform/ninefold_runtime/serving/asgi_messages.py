"""The part of ASGI that the application needs: bodies, responses, and client disconnects."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ninefold_runtime.serving.requests import RequestRejected

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LARGEST_BODY = 8 * 1024 * 1024


class HttpDisconnected(Exception):
    """The client has disconnected; no response can be delivered."""


def bearer(scope: Scope) -> bytes:
    """The token of the Authorization header; empty if there is none."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, token = bytes(value).partition(b" ")
            return token.strip() if scheme.lower() == b"bearer" else b""
    return b""


async def read_body(receive: Receive) -> bytes:
    """The whole body.

    :raises RequestRejected: if it is larger than ``LARGEST_BODY`` bytes.
    :raises Left: if the client leaves before its end.
    """
    chunks, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpDisconnected
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > LARGEST_BODY:
            raise RequestRejected(f"the body is larger than {LARGEST_BODY:,} bytes", status=413)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


class AsgiResponse:
    """One answer on its way out, whole or as server-sent events."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None

    async def whole(
        self,
        status: int,
        body: bytes,
        *,
        kind: bytes = b"application/json",
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        length = (b"content-length", str(len(body)).encode())
        await self._start(status, (b"content-type", kind), length, *headers)
        await self._send({"type": "http.response.body", "body": body})

    async def json(
        self, status: int, value: object, *, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        await self.whole(status, json_bytes(value), headers=headers)

    async def event(self, data: bytes) -> None:
        """One server-sent event; the first one begins the stream."""
        if self.status is None:
            await self._start(
                200, (b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")
            )
        await self._send(
            {"type": "http.response.body", "body": b"data: " + data + b"\n\n", "more_body": True}
        )

    async def end(self) -> None:
        """The end of a stream."""
        await self.event(b"[DONE]")
        await self._send({"type": "http.response.body", "body": b""})

    async def _start(self, status: int, *headers: tuple[bytes, bytes]) -> None:
        self.status = status
        await self._send(
            {"type": "http.response.start", "status": status, "headers": list(headers)}
        )


def json_bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
