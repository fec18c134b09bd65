"""Clients that open connections and then send or read as slowly as they can."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowClients:
    """Attackers of one server."""

    url: str
    #: Further headers, each with its line ending.
    headers: str = ""
    _open: ExitStack = field(default_factory=ExitStack)

    def slow_headers(self, count: int) -> list[socket.socket]:
        """A request line and one header, and no end of the headers."""
        return [self.connect(b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\n") for _ in range(count)]

    def slow_bodies(self, path: str, count: int) -> list[socket.socket]:
        """A POST that announces a body and sends its first byte."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self.headers}"
            "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        )
        return [self.connect(head.encode()) for _ in range(count)]

    def slow_uploads(self, path: str, count: int) -> list[socket.socket]:
        """A form with a file of 4 MiB, of which a part is sent."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self.headers}"
            "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 4194304\r\n\r\n"
            '--x\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n'
        )
        sent = head.encode() + b"y" * (1536 * 1024)
        return [self.connect(sent) for _ in range(count)]

    def slow_readers(self, path: str, count: int, *, body: bytes = b"") -> list[socket.socket]:
        """A request for a long response of which nothing is read."""
        method = "POST" if body else "GET"
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self.headers}"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return [self.connect(head.encode() + body) for _ in range(count)]

    def connect(self, sent: bytes, *, source: str = "127.0.0.1") -> socket.socket:
        parts = urlsplit(self.url)
        client = self._open.enter_context(socket.socket())
        # Otherwise the kernel would take megabytes of a response on the client's behalf.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(60)
        client.bind((source, 0))
        client.connect((parts.hostname, parts.port))
        client.sendall(sent)
        return client

    def close(self) -> None:
        self._open.close()


@contextmanager
def slow_clients(url: str, *, headers: str = "") -> Iterator[SlowClients]:
    clients = SlowClients(url=url, headers=headers)
    try:
        yield clients
    finally:
        clients.close()


def received(client: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)
