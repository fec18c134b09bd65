from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import pytest

from http_server.wsgi import BUFFERED_BODY_BYTES, RequestThreadPool, WsgiServer
from tests.unit.http_server.async_tests import async_test

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def server(application: Application, *, threads: int = 1) -> WsgiServer:
    return WsgiServer(
        application,
        lanes=(RequestThreadPool(name="health", threads=1, paths=("/healthz", "/own/")),),
        default=RequestThreadPool(name="requests", threads=threads),
        uploads=RequestThreadPool(name="uploads", threads=1, suffixes=("/complete",)),
        streams=RequestThreadPool(name="streams", threads=1),
    )


def scope(path: str = "/", *headers: tuple[bytes, bytes], raw: bytes = b"") -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "http_version": "1.1",
        "path": path,
        "raw_path": raw or path.encode(),
        "query_string": b"a=1",
        "headers": list(headers),
        "server": ("127.0.0.1", 8000),
        "client": ("192.0.2.1", 1234),
        "scheme": "http",
    }


class Client:
    """The client of one request."""

    def __init__(self, *pieces: bytes) -> None:
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for index, piece in enumerate(pieces or (b"",)):
            more = index < len(pieces) - 1
            self.messages.put_nowait({"type": "http.request", "body": piece, "more_body": more})
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self.started = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        return await self.messages.get()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
            self.started.set()
        self.body += message.get("body", b"")

    def leave(self) -> None:
        self.messages.put_nowait({"type": "http.disconnect"})

    def call(self, app: WsgiServer, scope: dict[str, Any]) -> Awaitable[None]:
        return asyncio.wait_for(app(scope, self.receive, self.send), 30)


def echo(environ: dict[str, Any], start: Any) -> list[bytes]:
    start("200 OK", [("Content-Type", "text/plain")])
    return [environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))]


@async_test
async def test_a_thread_is_taken_only_when_the_body_has_arrived() -> None:
    app = server(echo)
    slow = [Client(b"", b"") for _ in range(10)]
    for client in slow:
        client.messages.get_nowait()
        client.messages.get_nowait()
    waiting = [asyncio.ensure_future(client.call(app, scope())) for client in slow]
    quick = Client(b"he", b"llo")
    await quick.call(app, scope())
    assert (quick.status, quick.body) == (200, b"hello")
    for client in slow:
        client.leave()
    await asyncio.gather(*waiting)


@async_test
async def test_lanes_do_not_share_threads() -> None:
    gate = threading.Event()

    def stuck(environ: dict[str, Any], start: Any) -> list[bytes]:
        if environ["PATH_INFO"] != "/healthz":
            gate.wait(30)
        start("200 OK", [])
        return [b"ok"]

    app = server(stuck)
    others = [Client() for _ in range(6)]
    paths = ["/jobs"] * 5 + ["/own/complete"]
    waiting = [
        asyncio.ensure_future(client.call(app, scope(path)))
        for client, path in zip(others, paths, strict=True)
    ]
    try:
        healthy = Client()
        await healthy.call(app, scope("/healthz"))
        assert healthy.body == b"ok"
    finally:
        gate.set()
    await asyncio.gather(*waiting)
    assert [client.status for client in others] == [200] * 6


@async_test
async def test_a_large_body_is_read_by_the_application_as_it_arrives() -> None:
    pieces = [b"x" * 65536] * 40
    size = sum(map(len, pieces))
    assert size > 2 * BUFFERED_BODY_BYTES
    client = Client(*pieces)
    await client.call(server(echo), scope("/", (b"content-length", str(size).encode())))
    assert (client.status, len(client.body)) == (200, size)


@async_test
async def test_a_large_body_without_a_length_is_refused() -> None:
    client = Client(*[b"x" * 65536] * 40)
    await client.call(server(echo), scope())
    assert client.status == 411


@async_test
async def test_disconnect_during_large_body_frees_the_thread() -> None:
    errors: list[Exception] = []

    def reading(environ: dict[str, Any], start: Any) -> list[bytes]:
        try:
            return echo(environ, start)
        except OSError as error:
            errors.append(error)
            start("400 Bad Request", [])
            return [b""]

    app = server(reading)
    client = Client(b"x" * (BUFFERED_BODY_BYTES + 1), b"never")
    end = client.messages.get_nowait()
    client.messages.get_nowait()
    client.messages.put_nowait(end)
    client.leave()
    await client.call(app, scope("/", (b"content-length", b"9000000")))
    assert len(errors) == 1


class Stream:
    """A streamed response that goes on until it is closed."""

    streaming = True

    def __init__(self) -> None:
        self.closed = threading.Event()
        self.threads: set[int] = set()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.threads.add(threading.get_ident())
            yield b""

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed.set()


@async_test
async def test_stream_leaves_its_lane_and_ends_on_disconnect() -> None:
    streams: list[Stream] = []

    def streaming(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        start("200 OK", [])
        if environ["PATH_INFO"] != "/stream":
            return [b"whole"]
        streams.append(Stream())
        return streams[-1]

    app = server(streaming)
    client = Client()
    streamed = asyncio.ensure_future(client.call(app, scope("/stream")))
    await asyncio.wait_for(client.started.wait(), 30)
    whole = Client()
    await whole.call(app, scope())
    assert whole.body == b"whole"
    # There is one stream at a time here.
    refused = Client()
    await refused.call(app, scope("/stream"))
    assert refused.status == 503
    assert streams[1].closed.is_set()
    client.leave()
    await streamed
    assert streams[0].closed.is_set()
    assert len(streams[0].threads) == 1


@async_test
async def test_a_stream_that_fails_ends_without_a_second_response() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"begin"
        raise TimeoutError("the engine is silent")

    def failing(_environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        start("200 OK", [])
        return chunks()

    app = server(failing)
    client = Client()
    with pytest.raises(TimeoutError, match="the engine is silent"):
        await client.call(app, scope())
    assert (client.status, client.body) == (200, b"begin")


@async_test
async def test_the_environment_is_that_of_the_wsgi_specification() -> None:
    seen: dict[str, Any] = {}

    def looking(environ: dict[str, Any], start: Any) -> list[bytes]:
        seen.update(environ)
        return echo(environ, start)

    headers = [
        (b"content-type", b"text/plain"),
        (b"cookie", b"a=1"),
        (b"cookie", b"b=2"),
        (b"x-forwarded-for", b"1.1.1.1"),
        (b"x_forwarded_for", b"6.6.6.6"),
        (b"x-forwarded-for", b"2.2.2.2"),
    ]
    client = Client(b"abc")
    await client.call(server(looking), scope("/x", *headers, raw=b"/%E4%B8%AD%2F%FF"))
    assert seen["PATH_INFO"].encode("latin-1") == b"/\xe4\xb8\xad/\xff"
    assert (seen["CONTENT_TYPE"], seen["CONTENT_LENGTH"]) == ("text/plain", "3")
    assert seen["HTTP_COOKIE"] == "a=1;b=2"
    assert seen["HTTP_X_FORWARDED_FOR"] == "1.1.1.1,2.2.2.2"
    assert (seen["REMOTE_ADDR"], seen["SERVER_PORT"]) == ("192.0.2.1", "8000")
    assert client.body == b"abc"
