"""Limits on connections: slow headers, slow bodies, slow readers, and connections per address.

A request may be answered before its body has arrived: 401, 413. The rest of the body is then read and
discarded before the connection is closed, because a connection that is closed with unread data is
reset, and a client that is still sending would lose the response (RFC 9112, section 9.6).

uvicorn reads headers, bodies and responses at whatever pace the client sets. The subclass here notes
when each phase of a request began and how many bytes came; a sweep once a second closes what is too
slow, so that a request itself costs no timer. Instants are the sweep's, so time-outs are exact to a
second.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

logger = logging.getLogger(__name__)

Network = IPv4Network | IPv6Network

_CHECK_INTERVAL_SECONDS = 1.0
#: Refused connections are logged at most this often.
_LOG_SECONDS = 60.0
#: This machine: the gateway, jobs, agents, and a proxy on the same host.
_LOCAL = (ip_network("127.0.0.1/32"), ip_network("::1/128"))


class InvalidSetting(ValueError):
    """A variable has an invalid value; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRefusal:
    """An error response of the server itself, after which the connection is closed."""

    status: HTTPStatus
    #: For programs, such as ``headers_too_large``.
    code: str
    message: str


def plain_text_refusal(refusal: ConnectionRefusal) -> tuple[str, bytes]:
    """The content type and the body of an error that is read by people."""
    return "text/plain; charset=utf-8", refusal.message.encode()


#: Content type and body of a refusal.
RefusalFormat = Callable[[ConnectionRefusal], tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of clients on time, headers and connections."""

    #: From the connection, or from the first byte of a further request, to the end of its headers.
    header_seconds: float = 15.0
    #: A request's line and headers together.
    max_header_bytes: int = 64 * 1024
    #: A body, and the reading of a response, may take this long and a second more for each
    #: ``min_bytes_per_second``.
    grace_seconds: float = 20.0
    min_bytes_per_second: float = 1024.0
    #: The rest of a body whose request has been answered is discarded up to this size, and for
    #: ``grace_seconds``.
    max_discarded_bytes: int = 1024**3
    #: Open connections of one address; 0 for any number.
    per_address: int = 512
    #: Proxies, whose connections are those of many clients.
    exempt: tuple[Network, ...] = ()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> ConnectionLimits:
        """The limits that the ``NINEFOLD_*`` variables describe.

        :raises InvalidSetting: if a variable has a value that cannot be used.
        """
        return cls(
            header_seconds=read_number(environ, "NINEFOLD_HEADER_SECONDS", 15.0, least=1.0),
            max_header_bytes=int(
                read_number(environ, "NINEFOLD_MAX_HEADER_BYTES", 64 * 1024, least=4096.0)
            ),
            grace_seconds=read_number(environ, "NINEFOLD_CLIENT_GRACE_SECONDS", 20.0, least=1.0),
            min_bytes_per_second=read_number(
                environ, "NINEFOLD_CLIENT_MIN_RATE", 1024.0, least=1.0
            ),
            per_address=int(
                read_number(environ, "NINEFOLD_CONNECTIONS_PER_ADDRESS", 512.0, least=0.0)
            ),
            exempt=_read_networks(environ, "NINEFOLD_TRUSTED_PROXIES"),
        )

    def longest_transfer_seconds(self, size: int) -> float:
        """The longest time in which that many bytes may pass."""
        return self.grace_seconds + size / self.min_bytes_per_second


def read_number(
    environ: Mapping[str, str], name: str, default: float, *, least: float = 0.001
) -> float:
    """The number in a variable.

    :raises InvalidSetting: if it is none, or smaller than it may be.
    """
    text = environ.get(name, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        raise InvalidSetting(f"{name} is {text!r}; it must be a number") from None
    if not least <= value < float("inf"):
        raise InvalidSetting(f"{name} is {text}; it must be at least {least:g}")
    return value


def _read_networks(environ: Mapping[str, str], name: str) -> tuple[Network, ...]:
    texts = [part.strip() for part in environ.get(name, "").split(",") if part.strip()]
    try:
        return tuple(map(ip_network, texts))
    except ValueError as error:
        raise InvalidSetting(f"{name}: {error}; write 10.0.0.7 or 10.0.0.0/24") from None


def raise_open_file_limit() -> None:
    """Let this process open as many connections as the system allows; the usual soft limit is 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _Phase(Enum):
    #: Between two requests; uvicorn's keep-alive time-out applies.
    IDLE = auto()
    HEADERS = auto()
    BODY = auto()
    #: The rest of a request that has been answered.
    DISCARD = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class _ResponseTransport:
    """What a response needs of its connection, with a ``close`` that waits for the rest of the request."""

    write: Callable[[bytes], None]
    is_closing: Callable[[], bool]
    close: Callable[[], None]


class ConnectionGuard:
    """The open connections of one server, swept once a second."""

    def __init__(
        self, limits: ConnectionLimits, *, format_refusal: RefusalFormat = plain_text_refusal
    ) -> None:
        self.limits = limits
        self.format_refusal = format_refusal
        #: The time of the last sweep, or of the first connection after a pause.
        self.now = 0.0
        self._connections: set[GuardedProtocol] = set()
        self._by_address: Counter[str] = Counter()
        self._exempt = (*limits.exempt, *_LOCAL)
        self._sweeping = False
        self._refused = 0
        self._logged_at = float("-inf")

    @property
    def protocol_class(self) -> type[asyncio.Protocol]:
        """For uvicorn's ``http``."""
        return cast(type[asyncio.Protocol], partial(GuardedProtocol, guard=self))

    def add(self, connection: GuardedProtocol) -> bool:
        """Register a connection; False if its address has too many."""
        if not self._sweeping:
            self._sweeping = True
            self.now = connection.loop.time()
            connection.loop.call_later(
                _CHECK_INTERVAL_SECONDS, self._close_expired_connections, connection.loop
            )
        self._connections.add(connection)
        address = self._counted_address(connection)
        if address is None:
            return True
        self._by_address[address] += 1
        connection.counted_address = address
        if self._by_address[address] <= self.limits.per_address:
            return True
        self._refused += 1
        self._log_refused(address)
        return False

    def remove(self, connection: GuardedProtocol) -> None:
        self._connections.discard(connection)
        if (address := connection.counted_address) is not None:
            connection.counted_address = None
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _counted_address(self, connection: GuardedProtocol) -> str | None:
        """The address whose connections are counted with this one; None if it is exempt."""
        if not self.limits.per_address or connection.client is None:
            return None
        try:
            address = ip_address(connection.client[0].partition("%")[0])
        except ValueError:
            return None
        if isinstance(address, IPv6Address):
            if address.ipv4_mapped is None:
                # A subscriber has a /64 and could change its address with each connection.
                own = ip_network((int(address) >> 64 << 64, 64))
                return None if _is_in_networks(address, self._exempt) else str(own)
            address = address.ipv4_mapped
        return None if _is_in_networks(address, self._exempt) else str(address)

    def _log_refused(self, address: str) -> None:
        if self.now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = self.now
            logger.warning(
                "connections refused: an address has its maximum",
                extra={"address": address, "refused_connections": self._refused},
            )

    def _close_expired_connections(self, event_loop: asyncio.AbstractEventLoop) -> None:
        now = event_loop.time()
        elapsed, self.now = now - self.now, now
        for connection in tuple(self._connections):
            connection.enforce(elapsed=elapsed)
        self._sweeping = bool(self._connections)
        if self._sweeping:
            event_loop.call_later(
                _CHECK_INTERVAL_SECONDS, self._close_expired_connections, event_loop
            )


def _is_in_networks(address: Any, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol under the limits of a :class:`ConnectionGuard`."""

    def __init__(self, *args: Any, guard: ConnectionGuard, **options: Any) -> None:
        super().__init__(*args, **options)
        self.counted_address: str | None = None
        self._guard = guard
        self._phase = _Phase.HEADERS
        self._since = 0.0
        self._bytes = 0
        #: ``_bytes`` at the last sweep of the phase; -1 before the first.
        self._swept_bytes = -1
        #: Of the request whose headers are read.
        self._header_bytes = 0
        #: The deadline of a response that the client does not read; None while it is read.
        self._unread_until: float | None = None
        #: Close the connection when the rest of the request has arrived.
        self._close_after_body = False
        self._refused = False

    # -- asyncio.Protocol ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        admitted = self._guard.add(self)
        self._since = self._guard.now
        if not admitted:
            self._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE,
                code="too_many_connections",
                message="Too many connections from your address: "
                f"the limit is {self._guard.limits.per_address}.",
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._bytes += len(data)
            self._limit_discarded_bytes()
            return
        if self._phase is _Phase.IDLE:
            self._enter_phase(_Phase.HEADERS)
        super().data_received(data)
        if self._phase is _Phase.HEADERS:
            self._bytes += len(data)
            if self._bytes > self._guard.limits.max_header_bytes:
                self._refuse_headers()
        elif self._awaits_next_request():
            # The response came before the end of the body, whose data stopped uvicorn's timer.
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _awaits_next_request(self) -> bool:
        """Whether the last request and its response are complete, and the connection is not to be closed."""
        answered = self._incomplete_request_cycle() is None
        return answered and self._phase is _Phase.IDLE and not self._refused

    def send_400_response(self, msg: str) -> None:
        if self._phase is _Phase.DISCARD:
            # The request has its response; what is left of it cannot be parsed.
            self._refused = True
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, code="invalid_http", message=msg)

    # -- callbacks of the parser --------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._header_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        # A colon, a space and a line ending.
        self._header_bytes += len(name) + len(value) + 4

    def on_headers_complete(self) -> None:
        if self._refused:
            return
        if self._header_bytes > self._guard.limits.max_header_bytes:
            # All of them came in one read.
            self._refuse_headers()
            return
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.transport = cast(
                asyncio.Transport,
                _ResponseTransport(
                    write=self.transport.write,
                    is_closing=self.transport.is_closing,
                    close=self._close_after_request,
                ),
            )
        self._enter_phase(_Phase.BODY)

    def on_body(self, body: bytes) -> None:
        if self._refused:
            return
        super().on_body(body)
        self._bytes += len(body)
        self._limit_discarded_bytes()

    def on_message_complete(self) -> None:
        if self._refused:
            return
        super().on_message_complete()
        self._enter_phase(_Phase.IDLE)
        if self._close_after_body:
            self._refused = True
            self.transport.close()

    # -- responses ----------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        if self._phase is _Phase.BODY and self._incomplete_request_cycle() is None:
            self._enter_phase(_Phase.DISCARD)
        super().on_response_complete()

    def _close_after_request(self) -> None:
        """Close the connection after a response, and after the rest of its request."""
        if self._phase is _Phase.BODY and self._incomplete_request_cycle() is None:
            self._close_after_body = True
        else:
            self.transport.close()

    def _enter_phase(self, phase: _Phase) -> None:
        self._phase, self._since, self._bytes = phase, self._guard.now, 0
        self._swept_bytes = -1

    def _limit_discarded_bytes(self) -> None:
        limit = self._guard.limits.max_discarded_bytes
        if self._phase is _Phase.DISCARD and self._bytes > limit:
            self._refused = True
            self.transport.close()

    # -- periodic check -----------------------------------------------------------------------

    def enforce(self, *, elapsed: float) -> None:
        """Close the connection if the client is slower than the limits allow.

        :param elapsed: seconds since the last sweep.
        """
        limits, now = self._guard.limits, self._guard.now
        if self._is_unread():
            self.transport.abort()
        elif self._phase is _Phase.DISCARD:
            # After a refusal nothing is parsed: the end of the request is when nothing more comes.
            ended = self._refused and self._bytes == self._swept_bytes
            self._swept_bytes = self._bytes
            if ended or now - self._since > limits.grace_seconds:
                self._refused = True
                self.transport.close()
        elif self._refused:
            return
        elif self._phase is _Phase.HEADERS:
            if self._incomplete_request_cycle() is not None:
                # The response to an earlier request comes first; some clients send a stray line after a body.
                self._since += elapsed
            elif now - self._since > limits.header_seconds:
                self._refuse(
                    HTTPStatus.REQUEST_TIMEOUT,
                    code="headers_timeout",
                    message=f"The headers did not arrive within {limits.header_seconds:g} s.",
                )
        elif self._phase is _Phase.BODY:
            if self.flow.read_paused:
                # The application has not read the received data: the client is not the slow one.
                self._since += elapsed
            elif now - self._since > limits.longest_transfer_seconds(self._bytes):
                self._refuse(
                    HTTPStatus.REQUEST_TIMEOUT,
                    code="request_timeout",
                    message=f"The body arrived slower than {limits.min_bytes_per_second:g} bytes a second.",
                )

    def _is_unread(self) -> bool:
        """Whether the client has not read the rest of a response for too long."""
        pending = self.transport.get_write_buffer_size()
        # Otherwise the application still adds to it, and its size tells nothing about the client.
        complete = self._refused or self._incomplete_request_cycle() is None
        if not pending or not (complete or self.flow.write_paused):
            self._unread_until = None
            return False
        now = self._guard.now
        if self._unread_until is None:
            self._unread_until = now + self._guard.limits.longest_transfer_seconds(pending)
        return now > self._unread_until

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_until = None

    def _incomplete_request_cycle(self) -> RequestResponseCycle | None:
        """The request whose response is not complete."""
        cycle: RequestResponseCycle | None = self.cycle
        return None if cycle is None or cycle.response_complete else cycle

    def _refuse_headers(self) -> None:
        limit = self._guard.limits.max_header_bytes
        self._refuse(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            code="headers_too_large",
            message=f"The request line and the headers are longer than {limit} bytes.",
            discard=True,
        )

    def _refuse(
        self, status: HTTPStatus, *, code: str, message: str, discard: bool = False
    ) -> None:
        """Send an error, if the application has not started a response, and close.

        :param discard: first discard what the client is still sending.
        """
        if self._refused:
            return
        self._refused = True
        cycle: RequestResponseCycle | None = self.cycle
        # While headers are read, the cycle is that of the previous request.
        of_this = cycle if self._phase is _Phase.BODY else self._incomplete_request_cycle()
        if of_this is None or not of_this.response_started:
            content_type, body = self._guard.format_refusal(
                ConnectionRefusal(status=status, code=code, message=message)
            )
            self.transport.write(
                f"HTTP/1.1 {status.value} {status.phrase}\r\n"
                f"content-type: {content_type}\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
                + body
            )
        if (open_cycle := self._incomplete_request_cycle()) is not None:
            open_cycle.disconnected = True
            open_cycle.message_event.set()
        if discard:
            self._enter_phase(_Phase.DISCARD)
            self.flow.resume_reading()
        else:
            self.transport.close()
