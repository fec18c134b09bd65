"""An S3 server process for tests, and a proxy in front of it that injects faults.

``NINEFOLD_TEST_S3_URL`` names another server instead, with ``AWS_ACCESS_KEY_ID`` and ``AWS_SECRET_ACCESS_KEY``.
"""

from __future__ import annotations

import http.client
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config

from tests.contract.waiting import until
from tests.contract.web_servers import CompanyAuthority, make_authority

KEYS: Mapping[str, str] = {
    "AWS_ACCESS_KEY_ID": os.environ.get("AWS_ACCESS_KEY_ID", "test-access-key"),
    "AWS_SECRET_ACCESS_KEY": os.environ.get("AWS_SECRET_ACCESS_KEY", "test-secret-key"),
    "AWS_EC2_METADATA_DISABLED": "true",
}
#: The minimum size of a part: 5 MiB by the S3 API, less on the server that is started here.
PART = 5 * 1024 * 1024 if "NINEFOLD_TEST_S3_URL" in os.environ else 256 * 1024


#: Answers are sent at once, where the kernel would keep them 40 ms for an acknowledgement.
MOTO = (
    "import socketserver, moto.server\n"
    "socketserver.StreamRequestHandler.disable_nagle_algorithm = True\n"
    "moto.server.main()"
)


@contextmanager
def s3_server(*, authority: CompanyAuthority | None = None) -> Iterator[str]:
    """The URL of a server that runs during the block; with HTTPS if there is an authority.

    The one that ``NINEFOLD_TEST_S3_URL`` names is used for plain HTTP only.
    """
    given = os.environ.get("NINEFOLD_TEST_S3_URL")
    if given and authority is None:
        yield given
        return
    pem = str(authority.server) if authority else ""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "ignore",
                "-c",
                MOTO,
                "-H",
                "127.0.0.1",
                "-p",
                str(port),
                *(("--ssl-cert", pem, "--ssl-key", pem) if pem else ()),
            ],
            stdout=output,
            stderr=output,
            env={**os.environ, "S3_UPLOAD_PART_MIN_SIZE": str(PART)},
        )
        try:
            until(lambda: _accepts(port), what="the S3 server accepts connections", within=60)
            yield f"{'https' if pem else 'http'}://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _accepts(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def new_bucket(url: str, *, ca_file: str = "") -> str:
    """Create a bucket and return its name."""
    name = f"ninefold-{secrets.token_hex(6)}"
    client(url, ca_file).create_bucket(Bucket=name)
    return name


@cache
def client(url: str, ca_file: str = "") -> Any:
    """A client of the server itself, for assertions."""
    return boto3.session.Session(
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    ).client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        verify=ca_file or None,
        config=Config(
            s3={"addressing_style": "path"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def store_options(url: str, bucket: str, **more: Any) -> dict[str, Any]:
    """Options of the adapter, with short time-outs and small parts."""
    return {
        "bucket": bucket,
        "prefix": "artifacts",
        "endpoint_url": url,
        "path_style": True,
        "part_size": PART,
        "attempts": 3,
        "connect_seconds": 1.0,
        "read_seconds": 1.0,
        **more,
    }


#: What a fault sees: method, path with query, and the number of this request among those that match.
Fault = Callable[[str, str, int], str]


class FaultyProxy:
    """Forwards requests to the server; ``fault`` names what goes wrong with one.

    ``""`` nothing; ``"500"`` or another status: that answer, not forwarded; ``"hang"``: no answer before the
    client gives up; ``"cut-request"``: the connection is reset before the body was read; ``"cut-response"``:
    forwarded, and half of the response's body is sent; ``"lost-response"``: forwarded, and the connection is
    reset; ``"corrupt-request"`` and ``"corrupt-response"``: one byte of the body is changed.
    """

    def __init__(self, target: str) -> None:
        self.target = urlsplit(target)
        self.fault: Fault = lambda method, path, number: ""
        self.requests: list[tuple[str, str, str]] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                outer.handle(self)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FaultyProxy:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def inject(self, kind: str, *, method: str, part: str = "", times: int = 1) -> None:
        """That fault for the first requests of a method whose path contains ``part``; times −1: for all."""
        count = 0

        def fault(seen: str, path: str, number: int) -> str:
            nonlocal count
            if seen != method or part not in path or (times >= 0 and count >= times):
                return ""
            count += 1
            return kind

        self.fault = fault
        self.requests.clear()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        with self._lock:
            kind = self.fault(request.command, request.path, len(self.requests))
            self.requests.append((request.command, request.path, kind))
        if kind == "hang":
            self.closing.wait(10)
        if kind in ("hang", "cut-request"):
            _reset(request)
            return
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        if kind.isdigit():
            _answer(request, int(kind), {}, b"")
            return
        if kind == "corrupt-request":
            body = bytes([body[0] ^ 1]) + body[1:]
        status, headers, content = self._forward(request, body)
        if kind == "lost-response":
            _reset(request)
            return
        if kind == "corrupt-response":
            content = bytes([content[0] ^ 1]) + content[1:]
        _answer(request, status, headers, content, cut=kind == "cut-response")

    def _forward(
        self, request: BaseHTTPRequestHandler, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(
            self.target.hostname or "", self.target.port, timeout=30
        )
        # The signature covers the host under which the client called.
        connection.putrequest(
            request.command, request.path, skip_host=True, skip_accept_encoding=True
        )
        for name, value in request.headers.items():
            if name.lower() not in ("connection", "expect"):
                connection.putheader(name, value)
        connection.endheaders(body or None)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        headers = {
            name: value
            for name, value in response.getheaders()
            if name.lower() not in ("connection", "transfer-encoding", "keep-alive")
        }
        return response.status, headers, content


def _answer(
    request: BaseHTTPRequestHandler,
    status: int,
    headers: Mapping[str, str],
    content: bytes,
    *,
    cut: bool = False,
) -> None:
    request.send_response_only(status)
    for name, value in headers.items():
        if name.lower() != "content-length":
            request.send_header(name, value)
    length = headers.get("Content-Length") if request.command == "HEAD" else str(len(content))
    request.send_header("Content-Length", length or "0")
    request.end_headers()
    with suppress(OSError):
        if request.command != "HEAD":
            request.wfile.write(content[: len(content) // 2] if cut else content)
        request.wfile.flush()
    if cut:
        _reset(request)


def _reset(request: BaseHTTPRequestHandler) -> None:
    request.close_connection = True
    with suppress(OSError):
        request.connection.shutdown(socket.SHUT_RDWR)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """An S3 server for the tests of this process, with credentials in the environment."""
    with pytest.MonkeyPatch.context() as patch, s3_server() as url:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        yield url


@dataclass(frozen=True, slots=True)
class HttpsBucket:
    """A bucket of a server whose certificate only ``ca_file`` makes trusted."""

    url: str
    name: str
    ca_file: str


@pytest.fixture(scope="session")
def https_bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsBucket]:
    """With credentials in the environment."""
    authority = make_authority(tmp_path_factory.mktemp("authority"), names=("127.0.0.1",))
    ca_file = str(authority.certificate)
    with pytest.MonkeyPatch.context() as patch, s3_server(authority=authority) as url:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        yield HttpsBucket(url=url, name=new_bucket(url, ca_file=ca_file), ca_file=ca_file)
