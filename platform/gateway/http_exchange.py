"""One HTTP request and its response, over ASGI."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import json
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterable, MutableMapping
from typing import Any

from gateway.errors import ApiError, ErrorFormat, bad_request

TYPE_JSON = b"application/json"
TYPE_EVENTS = b"text/event-stream; charset=utf-8"

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

#: Headers that mark a request as forwarded by a proxy.
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via")

# Unique without system randomness for each request, which costs more than the lookup of a key. An id
# identifies a line in a log; nothing trusts it.
_RUN = secrets.token_hex(8)
_numbers = itertools.count(1)


class ClientAborted(Exception):
    """The client closed the connection before its response was complete."""


class HttpExchange:
    """A request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.request_id = f"{_RUN}-{next(_numbers):x}"
        #: The status and headers have been sent.
        self.started = False
        #: The response is complete.
        self.finished = False
        self.error_format = ErrorFormat.OPENAI
        self._receive = receive
        self._send = send
        self._client: str = (scope.get("client") or ("", 0))[0]
        self._request_headers: dict[bytes, bytes] = dict(scope["headers"])
        self._headers: list[tuple[bytes, bytes]] = [(b"x-request-id", self.request_id.encode())]

    def header(self, name: bytes) -> str:
        """A request header by its lower-case name; empty if it is absent."""
        return self._request_headers.get(name, b"").decode("latin-1")

    @property
    def is_loopback(self) -> bool:
        """Whether the client is on this machine, and not a proxy."""
        if any(name in self._request_headers for name in _FORWARDED):
            return False
        try:
            address = ipaddress.ip_address(self._client)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return bool((mapped or address).is_loopback)

    @property
    def bearer(self) -> str:
        """The token in ``Authorization: Bearer``, or in Anthropic's ``x-api-key``; empty if there is none."""
        scheme, _, token = self.header(b"authorization").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else self.header(b"x-api-key").strip()

    @property
    def content_type(self) -> str:
        """The type of the request's body with its parameters."""
        return self.header(b"content-type")

    def add_headers(self, headers: Iterable[tuple[str, str]]) -> None:
        """Add headers to the response, whatever its status."""
        self._headers.extend((name.encode(), value.encode("latin-1")) for name, value in headers)

    async def read_body(
        self, *, content_type: str = "application/json", limit: int, seconds: float
    ) -> bytes:
        """The whole body.

        :raises ApiError: 415 if it is compressed or of another type, 413 if it is longer than
            ``limit`` bytes, 408 if it does not arrive within ``seconds``.
        :raises ClientAborted: if the client disconnects before the end of it.
        """
        given = self.content_type
        if given.partition(";")[0].strip().lower() != content_type:
            raise bad_request(
                "gateway.content_type.not_supported",
                "The Content-Type is {content_type}; it must be {required}.",
                content_type=repr(given[:100]),
                required=content_type,
                code="unsupported_media_type",
                status=415,
            )
        encoding = self.header(b"content-encoding").lower()
        if encoding not in ("", "identity"):
            raise bad_request(
                "gateway.content_encoding.not_supported",
                "The Content-Encoding is {encoding}; send the body uncompressed.",
                encoding=repr(encoding[:100]),
                code="unsupported_media_type",
                status=415,
            )
        length = self.header(b"content-length")
        if length.isdecimal() and int(length) > limit:
            raise _body_too_large_error(limit)
        message = await self._receive_message()
        body: bytes = message.get("body", b"")
        if message.get("more_body", False):
            try:
                async with asyncio.timeout(seconds):
                    body = await self._read_rest(body, limit=limit)
            except TimeoutError:
                raise bad_request(
                    "gateway.body.timeout",
                    "The body did not arrive within {seconds} s.",
                    seconds=f"{seconds:g}",
                    code="request_timeout",
                    status=408,
                ) from None
        if len(body) > limit:
            raise _body_too_large_error(limit)
        return body

    async def _read_rest(self, first_chunk: bytes, *, limit: int) -> bytes:
        body = bytearray(first_chunk)
        while True:
            message = await self._receive_message()
            body += message.get("body", b"")
            if not message.get("more_body", False) or len(body) > limit:
                return bytes(body)

    async def _receive_message(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientAborted
        return message

    async def while_connected(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the work in this task, and cancel it when the client disconnects.

        :raises ClientAborted: if the client disconnected before the response was complete.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("an exchange must be served inside a task")
        disconnected = False

        def on_disconnect() -> None:
            nonlocal disconnected
            disconnected = True
            task.cancel()

        watcher = asyncio.get_running_loop().create_task(self._watch_disconnect(on_disconnect))
        try:
            await work
        except asyncio.CancelledError:
            # A cancellation by the server at the end of its shutdown time is raised again.
            if disconnected and task.uncancel() == 0:
                raise ClientAborted from None
            raise
        finally:
            watcher.cancel()

    async def _watch_disconnect(self, on_disconnect: Callable[[], None]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        # A complete response reads as a disconnect too.
        if not self.finished:
            on_disconnect()

    async def respond(
        self,
        *,
        status: int,
        body: bytes,
        content_type: bytes = TYPE_JSON,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Send a complete response."""
        self.add_headers(headers)
        self.started = True
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [
                    (b"content-type", content_type),
                    (b"content-length", str(len(body)).encode()),
                    *self._headers,
                ],
            }
        )
        self.finished = True
        await self._send({"type": "http.response.body", "body": body})

    async def respond_json(self, content: object, *, status: int = 200) -> None:
        await self.respond(status=status, body=json.dumps(content).encode())

    async def respond_error(self, error: ApiError) -> None:
        headers = dict(error.headers)
        if error.status in (408, 413):
            # The rest of the body is not needed.
            headers["connection"] = "close"
        await self.respond(
            status=error.status, body=error.as_json(self.error_format), headers=headers.items()
        )

    async def start_stream(self, content_type: bytes = TYPE_EVENTS) -> None:
        """Open a stream of events, or of bytes of another type."""
        self.started = True
        await self._send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [
                    (b"content-type", content_type),
                    (b"cache-control", b"no-cache"),
                    # Reverse proxies would otherwise buffer events.
                    (b"x-accel-buffering", b"no"),
                    *self._headers,
                ],
            }
        )

    async def send_chunk(self, chunk: bytes) -> None:
        """Send an event or other bytes as one chunk, once the connection accepts it."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def finish_stream(self, chunk: bytes = b"") -> None:
        """Send the last chunk and the end of the stream."""
        if chunk:
            await self.send_chunk(chunk)
        self.finished = True
        await self._send({"type": "http.response.body", "body": b""})


def _body_too_large_error(limit: int) -> ApiError:
    return bad_request(
        "gateway.body.too_large",
        "The body is larger than {limit} bytes.",
        limit=limit,
        code="request_too_large",
        status=413,
    )
