"""The probe of the images says by its status whether a process does its work."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.unit.deployment.kustomizations import ROOT


def probe(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "launcher.healthcheck", *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    return done.returncode, done.stderr.strip()


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def port() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield str(server.server_address[1])
        server.shutdown()
        thread.join()


def test_a_server_that_answers_200_is_well_and_any_other_is_not(port: str) -> None:
    assert probe("answers", port, "/healthz") == (0, "")
    assert probe("answers", port, "/readyz") == (1, "/readyz answers 503")


def test_where_nobody_listens_nothing_is_well() -> None:
    status, said = probe("answers", "1", "/healthz")
    assert (status, said.startswith("127.0.0.1:1 is unreachable")) == (1, True)


def test_a_file_counts_while_it_is_fresh_whatever_its_name_ends_with(tmp_path: Path) -> None:
    prefix = str(tmp_path / "beat-schedule")
    assert probe("fresh", prefix, "600") == (1, f"there is no file {prefix}*")
    written = tmp_path / "beat-schedule.db"
    written.touch()
    assert probe("fresh", prefix, "600") == (0, "")
    old = time.time() - 900
    os.utime(written, (old, old))
    status, said = probe("fresh", prefix, "600")
    assert (status, " was written 90" in said) == (1, True)


def test_a_question_that_makes_no_sense_is_told_so() -> None:
    assert probe("answers", "web", "/healthz")[0] == 2
