"""A hub of models on loopback that speaks both hubs' interfaces, and can be made to fail.

``/repos`` live in memory. Weights are answered by a redirect to another path, as real hubs send clients to their
stores; ``Range`` is understood; every request is remembered.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pytest_django import Settings

from config.settings.outbound import HubAccess
from controlplane.domain.outbound.egress import EgressPolicy
from tests.contract.web_servers import Request

COMMIT = "1f0c" * 10


@dataclass(slots=True, kw_only=True)
class LocalHub:
    port: int
    #: Repository → path → content.
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    #: Content that is sent in place of a file's own, by path.
    damaged: dict[str, bytes] = field(default_factory=dict)
    #: The connection is cut in the middle of so many answers from the store.
    cuts: int = 0
    #: Status of every answer from the store, if not its content.
    store_status: int = 200
    #: Whoever asks needs this token.
    token: str = ""
    #: Branches and tags with their commits, as one of the interfaces has them.
    revisions: dict[str, str] = field(default_factory=lambda: {"main": COMMIT})
    #: Bytes of files that went out.
    sent: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def pieces(self) -> list[str]:
        """The ``Range`` of each request to the store."""
        return [one.headers["range"] for one in self.requests if one.path.startswith("/store/")]


class _Server(ThreadingHTTPServer):
    hub: LocalHub


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.hub.requests.append(
            Request(method="GET", path=self.path, headers=headers, body=b"")
        )
        parts = urlsplit(self.path)
        path, query = unquote(parts.path), parse_qs(parts.query)
        if path.startswith("/store/"):
            repository, _, name = path.removeprefix("/store/").partition("//")
            self._content(repository, name)
        elif (
            self.server.hub.token
            and headers.get("authorization") != f"Bearer {self.server.hub.token}"
        ):
            self._json({"error": "who are you?"}, status=401)
        elif path.startswith("/api/models/"):
            self._huggingface(path.removeprefix("/api/models/"), query)
        elif path.startswith("/api/v1/models/"):
            self._modelscope(path.removeprefix("/api/v1/models/"), query)
        elif "/resolve/" in path:
            repository, _, rest = path.lstrip("/").partition("/resolve/")
            self._redirect(f"/store/{repository}//{rest.partition('/')[2]}")
        else:
            self._json({"error": "not found"}, status=404)

    def _huggingface(self, rest: str, query: dict[str, list[str]]) -> None:
        repository, _, asked = rest.partition("/revision/")
        if asked:
            revisions = self.server.hub.revisions
            commit = asked if asked in revisions.values() else revisions.get(asked)
            if commit is None or repository not in self.server.hub.repositories:
                self._json({"error": "no"}, status=404)
            else:
                self._json({"sha": commit})
            return
        repository, _, _ = rest.partition("/tree/")
        files = sorted(self.server.hub.repositories[repository].items())
        # Two a page, so that a client has to follow the link.
        at = int(query.get("cursor", ["0"])[0])
        entries = [_entry(path, content) for path, content in files[at : at + 2]]
        link = {}
        if at + 2 < len(files):
            link = {
                "Link": f'<{self.server.hub.url}/api/models/{rest}?cursor={at + 2}>; rel="next"'
            }
        self._json([{"type": "directory", "path": "x"}, *entries], headers=link)

    def _modelscope(self, rest: str, query: dict[str, list[str]]) -> None:
        repository = "/".join(rest.split("/")[:2])
        if rest.endswith("/repo/files"):
            if repository not in self.server.hub.repositories:
                self._json({"Code": 10010205001, "Message": "model not found"})
                return
            files = [
                {
                    "Path": path,
                    "Size": len(content),
                    "Sha256": hashlib.sha256(content).hexdigest(),
                    "Type": "blob",
                }
                for path, content in self.server.hub.repositories[repository].items()
            ]
            self._json({"Code": 200, "Data": {"Files": [{"Type": "tree", "Path": "x"}, *files]}})
            return
        self._content(repository, query["FilePath"][0])

    def _redirect(self, place: str) -> None:
        self.send_response(302)
        self.send_header("Location", place)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _content(self, repository: str, name: str) -> None:
        if self.server.hub.store_status != 200:
            self._json({"error": "busy"}, status=self.server.hub.store_status)
            return
        content = self.server.hub.damaged.get(name, self.server.hub.repositories[repository][name])
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        piece = content[int(first) : int(last) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(piece)))
        self.end_headers()
        if self.server.hub.cuts:
            self.server.hub.cuts -= 1
            self.wfile.write(piece[: len(piece) // 2])
            self.close_connection = True
            return
        self.wfile.write(piece)
        self.server.hub.sent += len(piece)

    def _json(
        self, value: Any, *, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        """Be quiet."""


def _entry(path: str, content: bytes) -> dict[str, Any]:
    if path.endswith(".safetensors"):
        lfs = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}
        return {"type": "file", "path": path, "size": len(content), "oid": "f" * 40, "lfs": lfs}
    digest = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return {"type": "file", "path": path, "size": len(content), "oid": digest}


@contextmanager
def local_hub() -> Iterator[LocalHub]:
    hub = LocalHub(port=0)
    server = _Server(("127.0.0.1", 0), _Handler)
    server.hub = hub
    hub.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def configured_hub(settings: Settings) -> Iterator[LocalHub]:
    """A hub that the installation reaches, by both interfaces."""
    with local_hub() as found:
        settings.NINEFOLD_EGRESS = EgressPolicy.parse(
            allow=["127.0.0.1"], deny=[], schemes=["http", "https"], ports=[found.port, 443]
        )
        settings.NINEFOLD_HUBS = {
            name: HubAccess(address=found.url) for name in ("huggingface", "modelscope")
        }
        yield found
