from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from http_server.connection_limits import (
    ConnectionGuard,
    ConnectionLimits,
    GuardedProtocol,
    InvalidSetting,
)
from tests.unit.http_server.async_tests import async_test

LIMITS = ConnectionLimits(
    header_seconds=10, grace_seconds=20, min_bytes_per_second=1000, per_address=2
)


class Transport:
    """A connection whose client is controlled by the test."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.sent = b""
        self.pending = 0
        self.closed = self.aborted = False

    def get_extra_info(self, name: str) -> Any:
        return {"peername": (self.address, 1234), "sockname": ("127.0.0.1", 80)}.get(name)

    def get_write_buffer_size(self) -> int:
        return self.pending

    def write(self, content: bytes) -> None:
        self.sent += content

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


async def never(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.Event().wait()


class Server:
    """A guard whose clock is set by the test, without its timer."""

    def __init__(self, limits: ConnectionLimits = LIMITS, *, app: Any = never) -> None:
        self.guard = ConnectionGuard(limits)
        self.guard._sweeping = True
        self.config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
        self.connections: list[GuardedProtocol] = []

    def connect(self, address: str = "192.0.2.1") -> tuple[GuardedProtocol, Transport]:
        protocol: Any = self.guard.protocol_class
        connection = protocol(config=self.config, server_state=ServerState(), app_state={})
        transport = Transport(address)
        connection.connection_made(transport)
        self.connections.append(connection)
        return connection, transport

    def close(self) -> None:
        for connection in self.connections:
            connection.connection_lost(ConnectionResetError())

    def after(self, seconds: float) -> None:
        self.guard.now += seconds
        for connection in self.connections:
            connection.enforce(elapsed=seconds)


HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"


@async_test
async def test_slow_headers_time_out() -> None:
    server = Server()
    connection, transport = server.connect()
    _, idle = server.connect()
    for byte in b"POST / HTT":
        connection.data_received(bytes([byte]))
        server.after(1)
    assert not transport.closed
    server.after(1)
    assert transport.sent.startswith(b"HTTP/1.1 408 ")
    assert transport.closed
    assert idle.closed


@async_test
async def test_a_body_may_be_long_but_not_slower_than_the_minimum_rate() -> None:
    server = Server()
    quick, quick_end = server.connect()
    slow, slow_end = server.connect("192.0.2.2")
    for connection in (quick, slow):
        connection.data_received(HEAD)
    for _ in range(50):
        quick.data_received(b"x" * 1000)
        slow.data_received(b"x" * 500)
        # As the application does that reads its body.
        for connection in (quick, slow):
            connection.flow.resume_reading()
        server.after(1)
    assert not quick_end.closed
    assert slow_end.sent.startswith(b"HTTP/1.1 408 ")
    assert slow.cycle.disconnected


@async_test
async def test_slow_application_does_not_time_out_the_client() -> None:
    server = Server()
    connection, transport = server.connect()
    connection.data_received(HEAD + b"x" * 70_000)
    assert connection.flow.read_paused
    server.after(1000)
    assert not transport.closed


@async_test
async def test_unread_response_times_out() -> None:
    server = Server()
    unread, unread_end = server.connect()
    read, read_end = server.connect()
    for connection, transport in ((unread, unread_end), (read, read_end)):
        connection.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        transport.pending = 70_000
        connection.pause_writing()
    for _ in range(100):
        server.after(1)
        read.resume_writing()
        read.pause_writing()
    assert unread_end.aborted
    assert not read_end.aborted
    server.close()


@async_test
async def test_unread_complete_response_is_dropped() -> None:
    server = Server()
    connection, transport = server.connect()
    connection.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    transport.pending = 5_000
    server.after(1000)
    assert not transport.aborted, "the application is still at work"
    connection.cycle.response_complete = True
    server.after(1)
    server.after(24)
    assert not transport.aborted
    server.after(2)
    assert transport.aborted


@async_test
async def test_a_stray_line_after_a_request_does_not_end_its_response() -> None:
    server = Server()
    connection, transport = server.connect()
    connection.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    connection.data_received(b"\r\n")
    server.after(1000)
    assert not transport.closed
    connection.cycle.response_complete = True
    server.after(11)
    assert transport.closed


def answer_before_the_body(*headers: tuple[bytes, bytes]) -> Any:
    """An application that answers without reading the body."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        head = [(b"content-length", b"2"), *headers]
        await send({"type": "http.response.start", "status": 401, "headers": head})
        await send({"type": "http.response.body", "body": b"no"})

    return answer


async def answered(transport: Transport, *, times: int = 1) -> None:
    while transport.sent.count(b"HTTP/1.1 401 ") < times:
        await asyncio.sleep(0)
    # The application returns.
    await asyncio.sleep(0)


CLOSE = (b"connection", b"close")


@async_test
async def test_a_connection_is_closed_when_the_rest_of_an_answered_request_has_arrived() -> None:
    server = Server(app=answer_before_the_body(CLOSE))
    connection, transport = server.connect()
    # More than uvicorn keeps for the application.
    connection.data_received(HEAD + b"x" * 70_000)
    await answered(transport)
    assert transport.sent.endswith(b"\r\n\r\nno")
    assert not connection.flow.read_paused
    server.after(10)
    connection.data_received(b"x" * 29_999)
    server.after(9)
    assert not transport.closed
    connection.data_received(b"x" + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert transport.closed
    await asyncio.sleep(0)
    assert transport.sent.count(b"HTTP/1.1 ") == 1, "a request on a connection that is closed"


@pytest.mark.parametrize("headers", [(), (CLOSE,)], ids=["keep-alive", "close"])
@async_test
async def test_the_rest_of_an_answered_request_is_discarded_up_to_a_time_and_a_size(
    headers: tuple[tuple[bytes, bytes], ...],
) -> None:
    limits = ConnectionLimits(grace_seconds=20, min_bytes_per_second=1000, max_discarded_bytes=9000)
    server = Server(limits, app=answer_before_the_body(*headers))
    (slow, slow_end), (large, large_end) = server.connect(), server.connect()
    for connection, transport in ((slow, slow_end), (large, large_end)):
        connection.data_received(HEAD + b"x" * 20_000)
        await answered(transport)
    large.data_received(b"x" * 9000)
    assert not large_end.closed
    large.data_received(b"x")
    assert large_end.closed
    for _ in range(20):
        # With each byte a client of an open request would gain time.
        slow.data_received(b"x" * 400)
        server.after(1)
    assert not slow_end.closed
    server.after(1)
    assert slow_end.closed
    for transport in (slow_end, large_end):
        assert transport.sent.count(b"HTTP/1.1 ") == 1


@async_test
async def test_the_rest_of_an_answered_request_that_is_not_http_has_no_further_response() -> None:
    server = Server(app=answer_before_the_body())
    connection, transport = server.connect()
    connection.data_received(HEAD.replace(b"Content-Length: 100000", b"Transfer-Encoding: chunked"))
    await answered(transport)
    for _ in range(5):
        connection.data_received(b"no size of a chunk\r\n")
        server.after(1)
    assert not transport.closed
    server.after(1)
    assert transport.closed
    assert transport.sent.count(b"HTTP/1.1 ") == 1


@async_test
async def test_a_connection_is_kept_after_the_rest_of_an_answered_request() -> None:
    server = Server(app=answer_before_the_body())
    connection, transport = server.connect()
    connection.data_received(HEAD)
    await answered(transport)
    connection.data_received(b"x" * 100_000)
    # Without the timer an idle connection would be kept for ever.
    assert connection.timeout_keep_alive_task is not None
    server.after(1000)
    assert not transport.closed
    connection.data_received(HEAD)
    assert connection.timeout_keep_alive_task is None
    await answered(transport, times=2)
    server.close()


@pytest.mark.parametrize(
    ("first", "second", "counted"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8::2", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("127.0.0.1", "127.0.0.1", False),
        ("10.0.0.7", "10.0.0.7", False),
    ],
)
@async_test
async def test_connections_are_counted_by_address(
    first: str, second: str, *, counted: bool
) -> None:
    limits = ConnectionLimits.from_environment(
        {"NINEFOLD_CONNECTIONS_PER_ADDRESS": "1", "NINEFOLD_TRUSTED_PROXIES": "10.0.0.0/24"}
    )
    server = Server(limits)
    _, transport = server.connect(first)
    assert not transport.closed
    _, another = server.connect(second)
    assert another.closed is counted
    assert another.sent.startswith(b"HTTP/1.1 503 ") is counted
    server.close()
    _, later = server.connect(first)
    assert not later.closed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NINEFOLD_HEADER_SECONDS", "soon"),
        ("NINEFOLD_CLIENT_GRACE_SECONDS", "0"),
        ("NINEFOLD_CLIENT_MIN_RATE", "-1"),
        ("NINEFOLD_CONNECTIONS_PER_ADDRESS", "inf"),
        ("NINEFOLD_TRUSTED_PROXIES", "10.0.0.0/99"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match=name):
        ConnectionLimits.from_environment({name: value})


@async_test
async def test_headers_that_arrive_in_one_read_are_limited_too() -> None:
    """And no application sees the request."""
    server = Server(ConnectionLimits(max_header_bytes=5000))
    connection, transport = server.connect()
    connection.data_received(HEAD.replace(b"Host: a", b"Host: a\r\nX: " + b"a" * 5000) + b"body")
    assert transport.sent.startswith(b"HTTP/1.1 431 ")
    # The response would be lost to a client that is still sending.
    for _ in range(20):
        connection.data_received(b"x" * 1000)
        server.after(1)
    assert not transport.closed
    server.after(1)
    assert transport.closed
    assert transport.sent.count(b"HTTP/1.1 ") == 1
    assert connection.cycle is None
    other, other_end = server.connect("192.0.2.2")
    # Of two requests on one connection, each has the limit.
    for _ in range(2):
        other.data_received(HEAD.replace(b"Host: a", b"Host: a\r\nX: " + b"a" * 4000))
        other.data_received(b"x" * 100_000)
    assert not other_end.sent
    server.close()
