"""Outbound HTTP calls to checked addresses, on urllib3's connections.

A name is resolved once and every address behind it is checked; then the connection goes to one of those
addresses, while the certificate and the ``Host`` header are still the name's. A resolver that answers
differently the next time (DNS rebinding) gains nothing, because there is no second lookup. Proxies, credentials
and certificates from the process's environment are ignored.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from http.client import HTTPException
from ipaddress import ip_address
from typing import NoReturn, Self
from urllib.parse import urlsplit

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.response import HTTPResponse

from controlplane.domain.outbound.egress import Address, EgressPolicy, EgressTarget, parse_target
from controlplane.ports.outbound_http import OutboundFailed, OutboundResponse

AGENT = "Ninefold"
CONNECT_SECONDS = 5.0
LARGEST_ANSWER = 1024 * 1024
_CHUNK_SIZE = 64 * 1024

#: ``(host, port)`` → addresses, the preferred first.
Resolve = Callable[[str, int], Sequence[Address]]
#: What ends a call: the network, TLS, HTTP, or a socket that was closed because time was up.
_FAULTS = (OSError, HTTPError, HTTPException)


def resolve_host(host: str, port: int) -> Sequence[Address]:
    """As the machine's own resolver does.

    :raises OSError: if the name does not resolve.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


@cache
def _trusted_certificates() -> ssl.SSLContext:
    """Those of the system; loading them takes longer than most calls."""
    return ssl.create_default_context()


class HttpOutbound:
    """Implements ``controlplane.ports.outbound_http.Outbound``.

    ``seconds`` bounds a whole call, however slowly its answer drips; ``proxy`` is an ``http://host:port``
    that takes CONNECT, and gets the checked address, never the name.
    """

    def __init__(
        self,
        *,
        policy: EgressPolicy,
        proxy: str = "",
        seconds: float = 10.0,
        largest_answer: int = LARGEST_ANSWER,
        certificates: ssl.SSLContext | None = None,
        resolver: Resolve = resolve_host,
    ) -> None:
        self._policy = policy
        self._proxy = urlsplit(proxy) if proxy else None
        self._seconds = seconds
        self._largest = largest_answer
        self._certificates = certificates or _trusted_certificates()
        self._resolve = resolver

    def check(self, url: str) -> None:
        self._policy.check_target(parse_target(url))

    def fetch(
        self, url: str, *, headers: Mapping[str, str] | None = None, largest: int | None = None
    ) -> OutboundResponse:
        bound = self._largest if largest is None else largest
        return self._send_request("GET", url, body=None, headers=headers or {}, largest=bound)

    def post(
        self, url: str, *, body: bytes, headers: Mapping[str, str] | None = None
    ) -> OutboundResponse:
        return self._send_request(
            "POST", url, body=body, headers=headers or {}, largest=self._largest
        )

    def _send_request(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None,
        headers: Mapping[str, str],
        largest: int,
    ) -> OutboundResponse:
        began = time.monotonic()
        target = parse_target(url)
        self._policy.check_target(target)
        addresses = self._allowed_addresses(target)
        for address in addresses:
            self._policy.check_address(address, host=target.host)
        connection, address = self._connect_to_first(target, addresses)
        sent = {"User-Agent": AGENT, **headers, "Host": target.authority, "Connection": "close"}
        deadline = _ConnectionDeadline(
            connection, seconds=self._seconds - (time.monotonic() - began)
        )
        try:
            with deadline:
                connection.request(
                    method,
                    target.path,
                    body=body,
                    headers=sent,
                    preload_content=False,
                    decode_content=False,
                )
                # The answer has taken the socket over, and must be closed where it is not read to its end.
                with closing(connection.getresponse()) as response:
                    content = _read_content(response, largest=largest)
        except _FAULTS as error:
            if not deadline.passed and not isinstance(error, TimeoutError):
                raise OutboundFailed(
                    "egress.response.interrupted",
                    "the connection was closed before the response was complete: {error}",
                    error=str(error),
                ) from error
            deadline.passed = True
        finally:
            connection.close()
        # A truncated response of unknown length looks like a complete one.
        if deadline.passed:
            raise OutboundFailed(
                "egress.response.timeout",
                "no complete response within {seconds} s",
                seconds=f"{self._seconds:g}",
            )
        return OutboundResponse(
            status=response.status,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=content,
            seconds=time.monotonic() - began,
            address=str(address),
        )

    def _allowed_addresses(self, target: EgressTarget) -> Sequence[Address]:
        if target.literal is not None:
            return [target.literal]
        try:
            found = self._resolve(target.host, target.port)
        except (OSError, UnicodeError) as error:
            raise OutboundFailed(
                "egress.host.not_resolved",
                "the host name {host} cannot be resolved: {error}",
                host=target.host,
                error=str(error),
            ) from error
        if not found:
            raise OutboundFailed(
                "egress.host.no_address", "the host name {host} has no address", host=target.host
            )
        return found

    def _connect_to_first(
        self, target: EgressTarget, addresses: Sequence[Address]
    ) -> tuple[HTTPConnection, Address]:
        """The first address that answers; all of them have been checked."""
        until = time.monotonic() + min(CONNECT_SECONDS, self._seconds)
        for place, address in enumerate(addresses):
            connection = self._open_connection(target, address, seconds=until - time.monotonic())
            try:
                connection.connect()
                return connection, address
            except _FAULTS as error:
                connection.close()
                # A certificate that is invalid at one address is not retried at another.
                if isinstance(error, ssl.SSLError) or place == len(addresses) - 1:
                    _raise_unreachable(target, address, error)
                if time.monotonic() >= until:
                    _raise_unreachable(target, address, error)
        raise OutboundFailed(
            "egress.host.no_address", "the host name {host} has no address", host=target.host
        )

    def _open_connection(
        self, target: EgressTarget, address: Address, *, seconds: float
    ) -> HTTPConnection:
        host, port = str(address), target.port
        if self._proxy is not None:
            host, port = self._proxy.hostname or "", self._proxy.port or 80
        connection: HTTPConnection
        if target.scheme == "https":
            connection = HTTPSConnection(
                host,
                port,
                timeout=max(0.1, seconds),
                ssl_context=self._certificates,
                server_hostname=target.host,
            )
        else:
            connection = HTTPConnection(host, port, timeout=max(0.1, seconds))
        if self._proxy is not None:
            connection.set_tunnel(str(address), target.port, scheme="http")
        return connection


def _read_content(response: HTTPResponse, *, largest: int) -> bytes:
    """:raises OutboundFailed: if there is more than fits."""
    chunks = bytearray()
    while chunk := response.read(_CHUNK_SIZE):
        chunks += chunk
        if len(chunks) > largest:
            raise OutboundFailed(
                "egress.response.too_large",
                "the response is larger than {limit} bytes",
                limit=largest,
            )
    return bytes(chunks)


class _ConnectionDeadline:
    """Ends a connection when time is up: a socket's own timeout begins anew with every byte."""

    def __init__(self, connection: HTTPConnection, *, seconds: float) -> None:
        # Kept apart: a connection lets go of its socket as soon as the answer's head is there.
        self._socket = connection.sock
        self._watch = threading.Timer(max(0.0, seconds), self._close_socket)
        self._watch.daemon = True
        self.passed = False
        if self._socket is not None:
            self._socket.settimeout(max(0.1, seconds))

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.cancel()

    def _close_socket(self) -> None:
        self.passed = True
        if self._socket is not None:
            with suppress(OSError):
                # Below TLS, which another thread is in the middle of.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _raise_unreachable(target: EgressTarget, address: Address, error: Exception) -> NoReturn:
    if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
        raise OutboundFailed(
            "egress.certificate.not_trusted",
            "the certificate of {host} is not trusted: {error}",
            host=target.host,
            error=str(error),
        ) from error
    raise OutboundFailed(
        "egress.host.unreachable",
        "{host} ({address}, port {port}) cannot be reached: {error}",
        host=target.host,
        address=str(address),
        port=target.port,
        error=str(error),
    ) from error
