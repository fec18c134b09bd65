"""A WSGI application behind ASGI: each request runs in a thread, once its body has arrived.

Requests are divided into lanes with threads of their own, so that one kind of traffic cannot take
the threads of another::

    body read on the event loop ──▶ lane by path ──▶ thread: application ──▶ response, sent on the loop
                │ larger than 1 MiB                     │ streamed response
                └──▶ lane "uploads"                     └──▶ moves to the lane "streams"

A response that is not streamed is sent by the event loop after its thread is free again. A streamed
one keeps its thread, because generators of the application use thread-local state
(database connections, the language); :mod:`http_server.connection_limits` ends those that no client reads.
"""

from __future__ import annotations

import asyncio
import io
import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote_to_bytes

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
WsgiApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

#: A larger body is read by the application while it arrives, in the lane "uploads".
BUFFERED_BODY_BYTES = 1024 * 1024
#: A streamed response whose announced length is at most this is sent as a whole.
_BUFFERED_RESPONSE_BYTES = 256 * 1024
#: How long a request waits for a thread of its lane.
_WAIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestThreadPool:
    """Threads for one kind of request."""

    name: str
    threads: int
    #: Requests whose path is one of these, or begins with one that ends in a slash.
    paths: tuple[str, ...] = ()
    #: Requests whose path ends in one of these.
    suffixes: tuple[str, ...] = ()

    def matches(self, path: str) -> bool:
        return path.endswith(self.suffixes) or any(
            path.startswith(prefix) if prefix.endswith("/") else path == prefix
            for prefix in self.paths
        )


class ClientDisconnected(OSError):
    """The client closed the connection, or was cut off as too slow."""


class _LaneThreads:
    """The threads of a lane that are free."""

    def __init__(self, lane: RequestThreadPool) -> None:
        self.lane = lane
        self._free = asyncio.Semaphore(lane.threads)

    async def acquire(self) -> Callable[[], None]:
        """Acquire a thread; return the function that releases it, which is idempotent.

        :raises TimeoutError: if none becomes free in time.
        """
        async with asyncio.timeout(_WAIT_SECONDS):
            await self._free.acquire()
        acquired = True

        def release_thread() -> None:
            nonlocal acquired
            if acquired:
                acquired = False
                self._free.release()

        return release_thread


class WsgiServer:
    """The ASGI application that serves a WSGI one."""

    def __init__(
        self,
        application: WsgiApplication,
        *,
        lanes: Sequence[RequestThreadPool],
        default: RequestThreadPool,
        uploads: RequestThreadPool,
        streams: RequestThreadPool,
    ) -> None:
        self._application = application
        self._slots = tuple(_LaneThreads(lane) for lane in lanes)
        self._default = _LaneThreads(default)
        self._uploads = _LaneThreads(uploads)
        self._streams = threading.BoundedSemaphore(streams.threads)
        self._threads = ThreadPoolExecutor(
            sum(lane.threads for lane in (*lanes, default, uploads, streams)),
            thread_name_prefix="request",
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is served, not {scope['type']}")
        try:
            head, complete = await _read_buffered_body(receive)
        except ClientDisconnected:
            return
        if not complete and not any(name == b"content-length" for name, _ in scope["headers"]):
            await _send_error(
                send,
                HTTPStatus.LENGTH_REQUIRED,
                f"A body of more than {BUFFERED_BODY_BYTES} bytes needs a Content-Length.",
            )
            return
        # The lane matches requests that take as long without a large body.
        large = not complete or self._uploads.lane.matches(scope["path"])
        slots = self._uploads if large else self._threads_for_path(scope["path"])
        try:
            release_thread = await slots.acquire()
        except TimeoutError:
            logger.warning("a request found no free thread", extra={"lane": slots.lane.name})
            await _send_error(
                send, HTTPStatus.SERVICE_UNAVAILABLE, "The server is busy. Try again."
            )
            return
        request = _WsgiRequest(
            scope=scope,
            head=head,
            complete=complete,
            receive=receive,
            send=send,
            streams=self._streams,
            leave_lane=release_thread,
        )
        try:
            response = await asyncio.get_running_loop().run_in_executor(
                self._threads, request.run, self._application
            )
        finally:
            release_thread()
        if response is not None:
            await _send_complete_response(send, *response)

    def _threads_for_path(self, path: str) -> _LaneThreads:
        return next((slots for slots in self._slots if slots.lane.matches(path)), self._default)


async def _read_buffered_body(receive: Receive) -> tuple[bytes, bool]:
    """The body, or as much of it as is held in memory; whether that is all.

    :raises ClientDisconnected: if the client disconnects before.
    """
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        chunk = message.get("body", b"")
        body = body + chunk if body else chunk
        if not message.get("more_body", False):
            return body, True
        if len(body) > BUFFERED_BODY_BYTES:
            return body, False


async def _send_error(send: Send, status: HTTPStatus, message: str) -> None:
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")]
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        headers.append(("Retry-After", "5"))
    await _send_complete_response(send, status.value, headers, message.encode())


async def _send_complete_response(
    send: Send, status: int, headers: Sequence[tuple[str, str]], body: bytes
) -> None:
    await send(_response_start_message(status, headers))
    await send({"type": "http.response.body", "body": body})


def _response_start_message(status: int, headers: Sequence[tuple[str, str]]) -> Message:
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return {"type": "http.response.start", "status": status, "headers": encoded}


class _StreamedWsgiInput(io.RawIOBase):
    """``wsgi.input`` of a body that is still arriving; read by the request's thread."""

    def __init__(self, head: bytes, *, receive: Callable[[], Message]) -> None:
        self._buffer = memoryview(head)
        self._receive = receive
        self.complete = False

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        while not self._buffer and not self.complete:
            message = self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected("the client left in the middle of its body")
            self._buffer = memoryview(message.get("body", b""))
            self.complete = not message.get("more_body", False)
        size = min(len(target), len(self._buffer))
        target[:size] = self._buffer[:size]
        self._buffer = self._buffer[size:]
        return size


_Response = tuple[int, list[tuple[str, str]], bytes]


@dataclass(slots=True, kw_only=True)
class _WsgiRequest:
    """One request in its thread."""

    scope: Scope
    head: bytes
    complete: bool
    receive: Receive
    send: Send
    streams: threading.BoundedSemaphore
    #: Releases the lane's thread early; to be called on the event loop.
    leave_lane: Callable[[], None]
    event_loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    status: int = 500
    headers: list[tuple[str, str]] = field(default_factory=list)

    def run(self, application: WsgiApplication) -> _Response | None:
        """The response that is to be sent as a whole; None if it was streamed."""
        body: io.BufferedIOBase
        if self.complete:
            body = io.BytesIO(self.head)
        else:
            body = io.BufferedReader(_StreamedWsgiInput(self.head, receive=self._receive_message))
        iterable = application(self._wsgi_environ(body), self._start_response)
        try:
            if self._is_response_short(iterable):
                return self.status, self.headers, b"".join(iterable)
            if not self.streams.acquire(blocking=False):
                refusal = [("Content-Type", "text/plain; charset=utf-8"), ("Retry-After", "5")]
                return 503, refusal, b"Too many responses are being streamed. Try again."
            try:
                self.event_loop.call_soon_threadsafe(self.leave_lane)
                self._stream_response(iter(iterable))
            finally:
                self.streams.release()
            return None
        finally:
            if (close := getattr(iterable, "close", None)) is not None:
                close()

    def _wsgi_environ(self, body: io.BufferedIOBase) -> dict[str, Any]:
        scope = self.scope
        server, port = scope.get("server") or ("localhost", 80)
        environ: dict[str, Any] = {
            "REQUEST_METHOD": scope["method"],
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
            "QUERY_STRING": scope["query_string"].decode("latin-1"),
            "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
            "SERVER_NAME": server,
            "SERVER_PORT": str(port or ""),
            "REMOTE_ADDR": (scope.get("client") or ("",))[0],
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": scope.get("scheme", "http"),
            "wsgi.input": body,
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for raw_name, raw_value in scope["headers"]:
            # An underscore would be read as a dash, so a client could forge headers of a proxy.
            if b"_" in raw_name:
                continue
            name = raw_name.decode("latin-1").upper().replace("-", "_")
            if name not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                name = f"HTTP_{name}"
            value = raw_value.decode("latin-1")
            if name in environ:
                value = f"{environ[name]}{';' if name == 'HTTP_COOKIE' else ','}{value}"
            environ[name] = value
        if self.complete and self.head:
            # Also of a body that came in chunks, without a length.
            environ["CONTENT_LENGTH"] = str(len(self.head))
        return environ

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], _exc_info: object = None
    ) -> None:
        self.status, self.headers = int(status.partition(" ")[0]), headers

    def _is_response_short(self, iterable: Iterable[bytes]) -> bool:
        if isinstance(iterable, list) or not getattr(iterable, "streaming", True):
            return True
        length = next(
            (value for name, value in self.headers if name.lower() == "content-length"), ""
        )
        return length.isdecimal() and int(length) <= _BUFFERED_RESPONSE_BYTES

    def _stream_response(self, chunks: Iterator[bytes]) -> None:
        disconnect: Future[None] | None = None
        if self.complete:
            disconnect = asyncio.run_coroutine_threadsafe(
                self._until_disconnected(), self.event_loop
            )
        try:
            self._send_message(_response_start_message(self.status, self.headers))
            for chunk in chunks:
                if disconnect is not None and disconnect.done():
                    return
                if chunk:
                    self._send_message(
                        {"type": "http.response.body", "body": chunk, "more_body": True}
                    )
            self._send_message({"type": "http.response.body", "body": b""})
        finally:
            if disconnect is not None:
                disconnect.cancel()

    async def _until_disconnected(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass

    def _send_message(self, message: Message) -> None:
        # Returns when the connection accepts data, or when it is closed.
        asyncio.run_coroutine_threadsafe(
            _run_coroutine(self.send, message), self.event_loop
        ).result()

    def _receive_message(self) -> Message:
        received = asyncio.run_coroutine_threadsafe(_run_coroutine(self.receive), self.event_loop)
        message: Message = received.result()
        return message


async def _run_coroutine(function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    return await function(*arguments)
