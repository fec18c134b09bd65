"""Waiting for what another process does, with a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from process_supervision.processes import ProcessIdentity

SECONDS = 120.0


def wait_for(condition: Callable[[], bool], *, what: str, seconds: float = SECONDS) -> None:
    """:raises AssertionError: if it has not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    return ProcessIdentity.of(pid) is not None


def pid_in(path: Path) -> int:
    """The process that wrote its number there, once it has."""
    wait_for(lambda: path.exists() and path.read_text().endswith("\n"), what=f"{path.name} written")
    return int(path.read_text())


def gone(*pids: int) -> None:
    for pid in pids:
        wait_for(partial(_has_ended, pid), what=f"process {pid} ends")


def _has_ended(pid: int) -> bool:
    return not alive(pid)
