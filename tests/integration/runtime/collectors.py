"""A server on loopback that agents push to, and that can be told how to answer."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Collector:
    """Takes batches as the control plane does: each number once, and none that is below what it remembers."""

    port: int = 0
    #: (headers, text) of every request, in the order of arrival.
    received: list[tuple[dict[str, str], str]] = field(default_factory=list)
    #: Numbers and texts of the batches that counted.
    taken: list[tuple[int, str]] = field(default_factory=list)
    #: Status and headers of the next answers; it takes batches once they are used up.
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    #: The same for batches of one text.
    at_text: dict[str, list[tuple[int, dict[str, str]]]] = field(default_factory=dict)
    #: Seconds before the answer to batches of one text.
    slow: dict[str, float] = field(default_factory=dict)
    #: Whether it takes no batch below the highest, as the first control planes did.
    in_order: bool = False
    #: How many of the next batches are taken without an answer that arrives.
    mute: int = 0
    #: The highest number that it knows; those up to ``floor`` count as taken.
    last: int = 0
    floor: int = 0
    #: What was measured before is too old.
    oldest_at: datetime = datetime(1, 1, 1, tzinfo=UTC)
    token: str = "nft-right"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def listening(self) -> Iterator[None]:
        """On ``port``, of its own choice the first time."""
        server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        self.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def reserve(self) -> None:
        """Choose a port and listen on it later."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]

    @property
    def numbers(self) -> set[int]:
        return {number for number, _ in self.taken}

    def take(self, sequence: int, text: str) -> bool:
        floor = self.last if self.in_order else self.floor
        if sequence <= floor or sequence in self.numbers:
            return False
        self.last = max(self.last, sequence)
        self.taken.append((sequence, text))
        return True


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            text = gzip.decompress(body).decode()
            collector.received.append((dict(self.headers), text))
            if self.headers["Authorization"] != f"Bearer {collector.token}":
                self.answer(401, {"detail": "no such token"}, {})
                return
            time.sleep(collector.slow.get(text, 0))
            answers = collector.at_text.get(text) or collector.answers
            if answers:
                status, headers = answers.pop(0)
                self.answer(status, {"detail": "as told"}, headers)
                return
            if datetime.fromisoformat(self.headers["X-Ninefold-At"]) < collector.oldest_at:
                self.answer(400, {"code": "push-outdated", "detail": "too old"}, {})
                return
            taken = collector.take(int(self.headers["X-Ninefold-Sequence"]), text)
            if collector.mute:
                collector.mute -= 1
                self.close_connection = True
                return
            self.answer(200, {"taken": taken, "sequence": collector.last}, {})

        def answer(self, status: int, content: object, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *arguments: object) -> None:
            pass

    return Handler
