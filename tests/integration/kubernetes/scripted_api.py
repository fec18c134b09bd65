"""A small HTTP server that plays the API server of a cluster, on its good days and on its bad ones.

It keeps objects with versions and a history, so that whoever watches from a version gets all that came after it.
Tricks are asked for one by one: each spoils one request of the kind that it is for.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from controlplane.adapters.clusters.kubernetes.kubeconfig import ApiAccess
from controlplane.adapters.clusters.kubernetes.object_names import LAUNCH

OURS, NODES, OTHERS, VERSION = "ours", "nodes", "others", "version"

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request: for what, whether to watch, and its query."""

    what: str
    watches: bool
    query: dict[str, str]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    player: Player

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Silently."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        what = NODES if parts.path.endswith("/nodes") else OURS
        if parts.path == "/version":
            what = VERSION
        elif "!=" in query.get("labelSelector", ""):
            what = OTHERS
        asked = Asked(what=what, watches="watch" in query, query=query)
        trick = self.player.note(asked)
        try:
            if trick is not None:
                trick(self)
            elif asked.watches:
                self.watch(asked)
            elif what == VERSION:
                self.say({"gitVersion": "v1.20.2"})
            else:
                self.list(asked)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def say(self, body: object, *, status: int = 200) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, status: int, reason: str) -> None:
        self.say({"kind": "Status", "code": status, "reason": reason}, status=status)

    def list(self, asked: Asked) -> None:
        self.say(self.player.listing(asked))

    def begin(self) -> None:
        """The head of an answer without an end."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def send_line(self, content: bytes) -> None:
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()

    def end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        self.close_connection = True

    def watch(self, asked: Asked) -> None:
        self.begin()
        until = time.monotonic() + int(asked.query["timeoutSeconds"])
        version = int(asked.query["resourceVersion"])
        for event in self.player.events(asked.what, after=version, until=until):
            self.send_line(json.dumps(event).encode() + b"\n")
        if self.player.closing:
            self.cut()
        else:
            self.end()


Trick = Callable[[Handler], None]


class Player:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.closing = False
        self._lock = threading.Condition()
        self._version = 100
        self._objects: dict[str, dict[str, Object]] = defaultdict(dict)
        self._history: list[tuple[int, str, Object]] = []
        self._tricks: dict[tuple[str, bool], deque[Trick]] = defaultdict(deque)
        self._ended: set[str] = set()
        self._page = 500

    def note(self, asked: Asked) -> Trick | None:
        with self._lock:
            self.asked.append(asked)
            tricks = self._tricks[asked.what, asked.watches]
            self._lock.notify_all()
            return tricks.popleft() if tricks else None

    def trick(self, what: str, *tricks: Trick, watches: bool = True) -> None:
        """Spoil the next requests of that kind, one each."""
        with self._lock:
            self._tricks[what, watches].extend(tricks)

    def page(self, size: int) -> None:
        self._page = size

    def put(self, what: str, name: str, **content: Any) -> None:
        """Add it, or change it."""
        with self._lock:
            kind = "MODIFIED" if name in self._objects[what] else "ADDED"
            stored: Object = {"metadata": {"name": name}, **content}
            stored["metadata"] |= content.get("metadata", {}) | {"name": name}
            self._objects[what][name] = stored
            self._happened(what, kind, stored)

    def pod(self, launch: str, *, name: str = "") -> None:
        """One of ours."""
        self.put(OURS, name or f"{launch}-main-0", metadata={"labels": {LAUNCH: launch}})

    def delete(self, what: str, name: str, *, announced: bool = True) -> None:
        """Delete an object; unannounced, only a list shows it."""
        with self._lock:
            gone = self._objects[what].pop(name)
            if announced:
                self._happened(what, "DELETED", gone)

    def bookmark(self, what: str) -> int:
        """Say a newer version and nothing else; the version."""
        with self._lock:
            self._happened(what, "BOOKMARK", {"metadata": {}})
            return self._version

    def end(self, what: str) -> None:
        """End its watches in good order, once."""
        with self._lock:
            self._ended.add(what)
            self._lock.notify_all()

    def _happened(self, what: str, kind: str, thing: Object) -> None:
        self._version += 1
        thing["metadata"]["resourceVersion"] = str(self._version)
        self._history.append((self._version, what, json.loads(json.dumps(event(kind, thing)))))
        self._lock.notify_all()

    def listing(self, asked: Asked) -> Object:
        with self._lock:
            every = sorted(
                self._objects[asked.what].values(), key=lambda one: one["metadata"]["name"]
            )
            first = int(asked.query.get("continue") or 0)
            metadata: Object = {"resourceVersion": str(self._version)}
            if first + self._page < len(every):
                metadata["continue"] = str(first + self._page)
            return {"metadata": metadata, "items": every[first : first + self._page]}

    def events(self, what: str, *, after: int, until: float) -> Iterator[Object]:
        """As they happen, until the watch ends."""
        sent = after
        while True:
            with self._lock:
                events = [one for one in self._history if one[0] > sent and one[1] == what]
                over = self.closing or time.monotonic() >= until or what in self._ended
                if not events and over:
                    self._ended.discard(what)
                    return
                if not events:
                    self._lock.wait(min(0.5, max(0.0, until - time.monotonic())))
                    continue
            for version, _, one in events:
                sent = version
                yield one

    def close(self) -> None:
        with self._lock:
            self.closing = True
            self._lock.notify_all()

    def count(self, what: str, *, watches: bool) -> int:
        with self._lock:
            return sum(one.what == what and one.watches == watches for one in self.asked)

    def last(self, what: str, *, watches: bool) -> Asked:
        with self._lock:
            return [one for one in self.asked if (one.what, one.watches) == (what, watches)][-1]

    def hold(self) -> None:
        """Keep a request waiting until the end of the play."""
        with self._lock:
            self._lock.wait_for(lambda: self.closing, timeout=60)


def event(kind: str, thing: Object) -> Object:
    return {"type": kind, "object": thing}


def answers_nothing(handler: Handler) -> None:
    """Half-open: the connection stands, and nobody is there."""
    handler.player.hold()
    handler.cut()


def says_nothing(handler: Handler) -> None:
    """The head of a watch, and not one line."""
    handler.begin()
    handler.player.hold()
    handler.cut()


def ends_at_once(handler: Handler) -> None:
    handler.begin()
    handler.end()


def is_cut_within_a_line(handler: Handler) -> None:
    handler.begin()
    handler.send_line(b'{"type": "ADDED", "object": {"metada')
    handler.cut()


def ends_within_a_line(handler: Handler) -> None:
    """As a proxy may, that closes what it passes on in good order."""
    handler.begin()
    handler.send_line(b'{"type": "ADDED", "object": {"metada')
    handler.end()


def talks_nonsense(handler: Handler) -> None:
    handler.begin()
    handler.send_line(b"<html>502 Bad Gateway</html>\n")
    handler.end()


def has_forgotten_the_version(handler: Handler) -> None:
    handler.refuse(410, "Expired")


def forgets_the_version(handler: Handler) -> None:
    """In the middle of a watch."""
    handler.begin()
    status = {
        "kind": "Status",
        "code": 410,
        "reason": "Expired",
        "message": "too old resource version",
    }
    handler.send_line(json.dumps(event("ERROR", status)).encode() + b"\n")
    handler.end()


def is_busy(handler: Handler) -> None:
    handler.refuse(503, "ServiceUnavailable")


def fails(handler: Handler) -> None:
    handler.refuse(500, "InternalError")


def forbids(handler: Handler) -> None:
    handler.refuse(403, "Forbidden")


@contextmanager
def played() -> Iterator[tuple[Player, ApiAccess]]:
    """A player for the block, and how it is reached."""
    player = Player()
    bound = type("Bound", (Handler,), {"player": player})
    with ThreadingHTTPServer(("127.0.0.1", 0), bound) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield (
                player,
                ApiAccess(server=f"http://127.0.0.1:{server.server_address[1]}", token="t"),
            )
        finally:
            player.close()
            server.shutdown()
            thread.join()
