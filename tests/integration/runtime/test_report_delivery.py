"""The report client against a real server on loopback: refusals, outages, the manifest last."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ninefold_runtime import direct_uploads
from ninefold_runtime.exit_codes import ReportNotDelivered
from ninefold_runtime.report import ReportAddress, Reporter


@dataclass
class ControlPlane:
    """What a server heard, and what it is told to answer."""

    url: str = ""
    #: (method, path, headers, body) in the order of arrival.
    received: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    #: Answers for the next requests; 200 once they are used up.
    answers: list[tuple[int, str]] = field(default_factory=list)

    def points(self) -> list[dict[str, Any]]:
        return [
            point
            for method, path, _, body in self.received
            if (method, path) == ("POST", "/attempts/1/progress")
            for point in json.loads(body)["points"]
        ]


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    plane = ControlPlane()

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, text = plane.answers.pop(0) if plane.answers else (200, "{}")
            plane.received.append((self.command, self.path, dict(self.headers), body))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def __getattr__(self, name: str) -> Any:
            # The base class looks for one method per verb; all verbs are answered alike.
            if name in ("do_POST", "do_PUT"):
                return self.handle_one
            raise AttributeError(name)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    plane.url = f"http://127.0.0.1:{server.server_port}/attempts/1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield plane
    server.shutdown()
    server.server_close()
    thread.join()


def _reporter(plane: ControlPlane, said: list[str], **settings: float) -> Reporter:
    address = ReportAddress(url=plane.url, token="t0ken")
    pauses = {"first_pause_seconds": 0.02, "patience_seconds": 5.0} | settings
    return Reporter(address, log=said.append, **pauses)


def _result(folder: Path) -> Path:
    (folder / "adapter").mkdir(parents=True)
    (folder / "config.json").write_bytes(b"{}")
    (folder / "adapter" / "模型 a.bin").write_bytes(b"x" * 100_000)
    return folder


def test_files_go_first_and_the_manifest_last_with_their_digests(
    plane: ControlPlane, tmp_path: Path
) -> None:
    folder = _result(tmp_path / "result")
    with _reporter(plane, []) as reporter:
        reporter.deliver(folder, kind="model", metrics={"eval_loss": 0.5})
    methods = [(method, path) for method, path, _, _ in plane.received]
    assert methods == [
        ("PUT", "/attempts/1/files/adapter/%E6%A8%A1%E5%9E%8B%20a.bin"),
        ("PUT", "/attempts/1/files/config.json"),
        ("PUT", "/attempts/1/manifest"),
    ]
    _, _, headers, body = plane.received[0]
    digest = hashlib.sha256(body).hexdigest()
    assert headers["X-Content-SHA256"] == digest
    assert headers["Authorization"] == "Bearer t0ken"
    manifest = json.loads(plane.received[-1][3])
    assert manifest["kind"] == "model"
    assert manifest["metrics"] == {"eval_loss": 0.5}
    assert manifest["files"][0] == {
        "path": "adapter/模型 a.bin",
        "size": 100_000,
        "sha256": digest,
    }


def test_a_file_behind_a_link_is_not_handed_over(plane: ControlPlane, tmp_path: Path) -> None:
    folder = _result(tmp_path / "result")
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    with _reporter(plane, []) as reporter:
        reporter.deliver(folder, kind="outputs", metrics={})
    assert not any("link" in path for _, path, _, _ in plane.received)


def test_an_outage_is_waited_out(plane: ControlPlane, tmp_path: Path) -> None:
    plane.answers += [(503, "busy"), (429, "slow down"), (502, "gone")]
    said: list[str] = []
    with _reporter(plane, said) as reporter:
        reporter.deliver(_result(tmp_path / "result"), kind="model", metrics={})
    assert plane.received[-1][1] == "/attempts/1/manifest"
    assert sum("is tried again" in line for line in said) == 3


def test_a_refusal_ends_it_at_once_with_the_servers_words(
    plane: ControlPlane, tmp_path: Path
) -> None:
    plane.answers += [(409, '{"title": "Conflict", "detail": "the attempt has ended"}')]
    with (
        _reporter(plane, []) as reporter,
        pytest.raises(ReportNotDelivered, match="the attempt has ended"),
    ):
        reporter.deliver(_result(tmp_path / "result"), kind="model", metrics={})
    assert len(plane.received) == 1


def test_patience_ends(plane: ControlPlane, tmp_path: Path) -> None:
    plane.answers += [(503, "busy")] * 100
    said: list[str] = []
    with (
        _reporter(plane, said, patience_seconds=0.3) as reporter,
        pytest.raises(ReportNotDelivered, match="could not be handed over"),
    ):
        reporter.deliver(_result(tmp_path / "result"), kind="model", metrics={})


def test_points_arrive_in_order_and_once(plane: ControlPlane) -> None:
    with _reporter(plane, []) as reporter:
        for step in range(500):
            reporter.progress(step=step, loss=1.0)
        reporter.checkpoint(step=499)
        assert reporter.flush(within_seconds=10)
    points = plane.points()
    assert [point["step"] for point in points[:-1]] == list(range(500))
    assert points[-1] == {"checkpoint": {"step": 499}}


def test_points_wait_while_the_control_plane_is_away(plane: ControlPlane) -> None:
    plane.answers += [(503, "busy")] * 3
    with _reporter(plane, []) as reporter:
        reporter.progress(step=1, loss=float("nan"))
        reporter.progress(step=2)
        assert reporter.flush(within_seconds=10)
    # The first attempts were refused, the last one was taken.
    taken = [json.loads(body)["points"] for _, _, _, body in plane.received[3:]]
    assert [point["step"] for batch in taken for point in batch] == [1, 2]
    assert taken[0][0]["loss"] is None


def test_refused_progress_is_given_up_without_ending_the_run(plane: ControlPlane) -> None:
    plane.answers += [(401, "no such token")]
    said: list[str] = []
    with _reporter(plane, said) as reporter:
        reporter.progress(step=1)
        assert reporter.flush(within_seconds=10)
        reporter.progress(step=2)
    assert any("no longer reported: it answered 401: no such token" in line for line in said)
    assert len(plane.received) == 1


@pytest.mark.slow
def test_an_absent_control_plane_slows_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    nowhere = ReportAddress(url="http://127.0.0.1:9/attempts/1", token="t")
    reporter = Reporter(nowhere, log=said.append, patience_seconds=0.1, first_pause_seconds=0.05)
    with reporter:
        for step in range(100):
            reporter.progress(step=step)
        with pytest.raises(ReportNotDelivered, match="ConnectionRefusedError"):
            reporter.deliver(_result(tmp_path / "result"), kind="model", metrics={})
    assert said[0] == "step 0"


@pytest.mark.parametrize(
    "answer",
    [(200, '{"upload": "", "parts": []}'), (404, "an earlier release"), (200, "no JSON")],
    ids=["no-urls", "not-there", "no-json"],
)
def test_large_files_go_through_the_control_plane_where_no_urls_are_signed(
    plane: ControlPlane, tmp_path: Path, answer: tuple[int, str]
) -> None:
    folder = tmp_path / "result"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_bytes(b"x" * direct_uploads.SMALLEST)
    plane.answers.append(answer)
    with _reporter(plane, []) as reporter:
        reporter.deliver(folder, kind="outputs", metrics={})
    # The second one is not tried.
    assert [(method, path) for method, path, _, _ in plane.received] == [
        ("POST", "/attempts/1/uploads"),
        ("PUT", "/attempts/1/files/a"),
        ("PUT", "/attempts/1/files/b"),
        ("PUT", "/attempts/1/manifest"),
    ]
