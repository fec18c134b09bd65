"""The weight cache of a node: resumed and verified downloads, sharing, and eviction."""

from __future__ import annotations

import hashlib
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ninefold_runtime.exit_codes import DiskFull, InvalidTaskInput
from ninefold_runtime.report import ReportAddress, Reporter
from ninefold_runtime.weight_cache import (
    CacheFull,
    InputUnavailable,
    RemoteBlob,
    WeightCache,
    downloaded_bytes,
    main,
    store_certificates,
)
from tests.contract.web_servers import CompanyAuthority, make_authority

CONTENT = bytes(range(256)) * 8192


class BlobServer:
    """Serves ``content``; ``answers`` are what goes wrong with the next requests."""

    def __init__(self) -> None:
        self.content = CONTENT
        self.answers: list[str] = []
        self.ranges: list[str] = []
        self.supports_ranges = True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/blob?signature=secret"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def serve_https(self, authority: CompanyAuthority) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.server)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = request.headers["Range"]
        self.ranges.append(asked)
        fault = self.answers.pop(0) if self.answers else ""
        if fault.isdigit():
            request.send_response(int(fault))
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if self.supports_ranges else 0
        content = self.content[start:]
        if fault == "corrupt":
            content = b"?" + content[1:]
        request.send_response(206 if self.supports_ranges else 200)
        if self.supports_ranges:
            end = len(self.content) - 1
            request.send_header("Content-Range", f"bytes {start}-{end}/{len(self.content)}")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content[: len(content) // 2] if fault == "cut" else content)

    def blob(self) -> RemoteBlob:
        digest = f"sha256:{hashlib.sha256(self.content).hexdigest()}"
        return RemoteBlob(digest=digest, size=len(self.content), url=self.url)


@pytest.fixture
def server() -> Iterator[BlobServer]:
    blob_server = BlobServer()
    yield blob_server
    blob_server.close()


def cache_at(root: Path, **options: Any) -> WeightCache:
    defaults = {"limit": 10 * len(CONTENT), "hold_seconds": 0.0, "attempts": 3}
    return WeightCache(root, first_pause_seconds=0.001, **(defaults | options))


def stored(cache: WeightCache) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in (cache.root / "sha256").glob("*/*")}


def unfinished(cache: WeightCache) -> list[Path]:
    return list((cache.root / "partial").iterdir())


@pytest.mark.parametrize("fault", ["cut", "500", "429"])
def test_a_broken_download_goes_on_where_it_stopped(
    server: BlobServer, tmp_path: Path, fault: str
) -> None:
    server.answers = [fault, fault]
    cache = cache_at(tmp_path)
    cache.fetch([server.blob()], report=print)
    assert cache.path(server.blob().digest).read_bytes() == CONTENT
    half = len(CONTENT) // 2
    assert server.ranges[1] == (f"bytes={half}-" if fault == "cut" else "bytes=0-")
    assert unfinished(cache) == []


def test_another_process_continues_what_a_killed_one_left(
    server: BlobServer, tmp_path: Path
) -> None:
    server.answers = ["cut"]
    with pytest.raises(InputUnavailable, match="1 attempts"):
        cache_at(tmp_path, attempts=1).fetch([server.blob()], report=print)
    (partial,) = unfinished(cache_at(tmp_path))
    assert partial.stat().st_size == len(CONTENT) // 2
    cache_at(tmp_path).fetch([server.blob()], report=print)
    assert server.ranges[-1] == f"bytes={len(CONTENT) // 2}-"
    assert cache_at(tmp_path).path(server.blob().digest).read_bytes() == CONTENT


def test_a_server_without_ranges_starts_again(server: BlobServer, tmp_path: Path) -> None:
    server.supports_ranges, server.answers = False, ["cut"]
    cache = cache_at(tmp_path)
    cache.fetch([server.blob()], report=print)
    assert cache.path(server.blob().digest).read_bytes() == CONTENT


def test_damaged_bytes_are_never_visible(server: BlobServer, tmp_path: Path) -> None:
    cache = cache_at(tmp_path)
    server.answers = ["corrupt", "corrupt"]
    with pytest.raises(InputUnavailable, match="another digest"):
        cache.fetch([server.blob()], report=print)
    assert stored(cache) == {}
    server.answers = ["corrupt"]
    cache.fetch([server.blob()], report=print)
    assert cache.path(server.blob().digest).read_bytes() == CONTENT


def test_an_expired_url_ends_the_download_at_once(
    server: BlobServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers = ["403", "403"]
    blob = server.blob()
    manifest = tmp_path / "inputs.json"
    entry = f'{{"digest": "{blob.digest}", "size": {blob.size}, "url": "{blob.url}"}}'
    manifest.write_text(f'{{"files": [{entry}]}}')
    arguments = ["--manifest", str(manifest), "--cache", str(tmp_path / "c"), "--limit", "9999999"]
    assert main(arguments) == 1
    errors = capsys.readouterr().err
    assert "expired" in errors
    assert "secret" not in errors
    assert len(server.ranges) == 1


def test_many_processes_download_a_blob_once(server: BlobServer, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path;"
        "from ninefold_runtime.weight_cache import RemoteBlob, WeightCache;"
        "WeightCache(Path(sys.argv[1]), limit=10**8).fetch("
        "[RemoteBlob(digest=sys.argv[2], size=int(sys.argv[3]), url=sys.argv[4])], report=print)"
    )
    blob = server.blob()
    arguments = [str(tmp_path), blob.digest, str(blob.size), blob.url]
    processes = [subprocess.Popen([sys.executable, "-c", code, *arguments]) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert len(server.ranges) == 1
    assert unfinished(WeightCache(tmp_path, limit=1)) == []


def test_the_least_recently_used_blobs_make_room(server: BlobServer, tmp_path: Path) -> None:
    cache = cache_at(tmp_path, limit=2 * len(CONTENT))
    digests = []
    for number, letter in enumerate("abc"):
        server.content = letter.encode() * len(CONTENT)
        digests.append(server.blob().digest)
        cache.fetch([server.blob()], report=print)
        os.utime(cache.path(server.blob().digest), (number, number))
        if letter == "b":
            # The first is used again, so that the second is the oldest.
            server.content = b"a" * len(CONTENT)
            cache.fetch([server.blob()], report=print)
    assert [cache.path(digest).exists() for digest in digests] == [True, False, True]
    assert sum(stored(cache).values()) <= 2 * len(CONTENT)


def test_blobs_in_use_are_not_evicted(server: BlobServer, tmp_path: Path) -> None:
    cache = cache_at(tmp_path / "cache", limit=len(CONTENT))
    cache.fetch([server.blob()], report=print)
    first = server.blob().digest
    os.link(cache.path(first), tmp_path / "input")
    server.content = b"other" * 1000
    with pytest.raises(CacheFull, match=f"{len(CONTENT)} of {len(CONTENT)} bytes are in use"):
        cache.fetch([server.blob()], report=print)
    assert cache.path(first).exists()
    assert unfinished(cache) == []
    (tmp_path / "input").unlink()
    cache.fetch([server.blob()], report=print)
    assert not cache.path(first).exists()


def test_an_authority_of_the_company_is_trusted_beside_those_of_the_system(
    server: BlobServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = make_authority(tmp_path, names=("127.0.0.1",))
    server.serve_https(authority)
    with pytest.raises(
        InputUnavailable, match=r"not trusted: .*; the operator sets NINEFOLD_S3_CA"
    ):
        cache_at(tmp_path / "cache").fetch([server.blob()], report=print)
    monkeypatch.setenv("NINEFOLD_S3_CA_FILE", str(authority.certificate))
    cache_at(tmp_path / "cache").fetch([server.blob()], report=print)
    assert server.ranges == ["bytes=0-"]
    trusted = store_certificates()
    assert trusted is not None
    added = {each["serialNumber"] for each in trusted.get_ca_certs()}
    assert added > {each["serialNumber"] for each in ssl.create_default_context().get_ca_certs()}


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_authorities_that_cannot_be_read_are_named_at_the_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("NINEFOLD_S3_CA_FILE", str(file))
    address = ReportAddress(url="http://127.0.0.1:1", token="")
    with pytest.raises(InvalidTaskInput, match=f"NINEFOLD_S3_CA_FILE, {file}, cannot be read"):
        Reporter(address)
    (tmp_path / "list").write_text('{"files": []}')
    arguments = ["--manifest", str(tmp_path / "list"), "--cache", str(tmp_path / "cache")]
    assert main([*arguments, "--limit", "1"]) == InvalidTaskInput.code
    assert f"{file}, cannot be read" in capsys.readouterr().err


def test_inputs_larger_than_the_cache_are_refused(server: BlobServer, tmp_path: Path) -> None:
    cache = cache_at(tmp_path, limit=10)
    with pytest.raises(CacheFull, match="limited to 10 bytes"):
        cache.fetch([server.blob()], report=print)
    assert server.ranges == []


def test_what_the_disk_has_no_room_for_is_refused_before_it_begins(
    server: BlobServer, tmp_path: Path
) -> None:
    cache = cache_at(tmp_path, limit=1 << 62)
    large = RemoteBlob(digest=f"sha256:{'ab' * 32}", size=1 << 60, url=server.url)
    with pytest.raises(DiskFull, match=rf"downloads need {(1 << 60) + len(CONTENT)} bytes, \d+ "):
        cache.fetch([server.blob(), large], report=print)
    assert (server.ranges, unfinished(cache)) == ([], [])


def test_blobs_that_do_not_fit_together_are_refused_before_the_first(
    server: BlobServer, tmp_path: Path
) -> None:
    cache = cache_at(tmp_path / "cache", limit=2 * len(CONTENT))
    cache.fetch([server.blob()], report=print)
    os.link(cache.path(server.blob().digest), tmp_path / "input")
    wanted = []
    for letter in "ab":
        server.content = letter.encode() * len(CONTENT)
        wanted.append(server.blob())
    server.ranges.clear()
    with pytest.raises(CacheFull, match=f"{2 * len(CONTENT)} bytes are to be downloaded"):
        cache.fetch(wanted, report=print)
    assert server.ranges == []
    # One of them alone does.
    cache.fetch(wanted[1:], report=print)
    assert sum(stored(cache).values()) == 2 * len(CONTENT)


def test_lines_of_progress_say_how_many_bytes_are_here() -> None:
    assert downloaded_bytes("downloading inputs: 12 of 40 bytes") == 12
    assert downloaded_bytes("1 of 2 files are in the weight cache; 28 bytes to download") is None
