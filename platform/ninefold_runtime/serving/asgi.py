"""Requests and responses over ASGI: bodies with a limit, server-sent events, disconnects."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ninefold_runtime.serving.request_fields import RequestRejected

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LARGEST_BODY = 8 * 1024 * 1024


class HttpDisconnected(Exception):
    """The client has disconnected; no response can be delivered."""


class AsgiRequest:
    """One request on its way in."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope = scope
        self._receive = receive

    @property
    def method(self) -> str:
        return str(self._scope["method"])

    @property
    def path(self) -> str:
        return str(self._scope["path"])

    def header(self, name: bytes) -> bytes:
        """The value of the header, whose name is in lower case; empty if there is none."""
        return next((bytes(value) for key, value in self._scope["headers"] if key == name), b"")

    def bearer_token(self) -> bytes:
        """The token of the Authorization header; empty if there is none."""
        scheme, _, token = self.header(b"authorization").partition(b" ")
        return token.strip() if scheme.lower() == b"bearer" else b""

    async def body(self, *, largest: int = LARGEST_BODY) -> bytes:
        """The whole body.

        :raises RequestRejected: if it has more than ``largest`` bytes.
        :raises HttpDisconnected: if the client leaves before its end.
        """
        chunks, size = [], 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise HttpDisconnected
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > largest:
                raise RequestRejected(f"the body is larger than {largest:,} bytes", status=413)
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    async def disconnected(self) -> None:
        """Return when the client has left; only after the body was read."""
        while (await self._receive())["type"] != "http.disconnect":
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
        await self._start_response(status, (b"content-type", kind), length, *headers)
        await self._send({"type": "http.response.body", "body": body})

    async def json(
        self, status: int, value: object, *, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        await self.whole(status, _json_bytes(value), headers=headers)

    async def event(self, value: object, *, name: str = "") -> None:
        """One server-sent event; the first one begins the stream."""
        await self._event(_json_bytes(value), name=name)

    async def end(self, *, marker: bytes = b"[DONE]") -> None:
        """The end of a stream.

        :param marker: data of the last event; without it the stream ends with the event before.
        """
        if marker:
            await self._event(marker)
        await self._send({"type": "http.response.body", "body": b""})

    async def _event(self, data: bytes, *, name: str = "") -> None:
        if self.status is None:
            await self._start_response(
                200, (b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")
            )
        head = f"event: {name}\n".encode() if name else b""
        body = head + b"data: " + data + b"\n\n"
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _start_response(self, status: int, *headers: tuple[bytes, bytes]) -> None:
        self.status = status
        await self._send(
            {"type": "http.response.start", "status": status, "headers": list(headers)}
        )


def _json_bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
