"""What is running in a home, as its supervisor wrote it down, for the commands that ask.

The lock is the truth about *whether* a supervisor runs: the kernel drops it with the process. The
record says *what* runs, and after a killed supervisor it names what may be left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from launcher.credentials import write_private
from launcher.layout import Layout


class Phase(StrEnum):
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


class AlreadyRunning(RuntimeError):
    """Another supervisor, or a command that stops one, holds this home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEntry:
    """One kept process. ``pid`` is its guardian's, 0 while it waits to be started again."""

    name: str
    pid: int
    ticks: int
    restarts: int
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    pid: int
    ticks: int
    phase: Phase
    since: datetime
    web_url: str
    gateway_url: str
    processes: tuple[ProcessEntry, ...]


def write(layout: Layout, record: Record) -> None:
    content: dict[str, Any] = {**asdict(record), "since": record.since.isoformat()}
    write_private(layout.run / "supervisor.json", json.dumps(content, indent=2) + "\n")


def read(layout: Layout) -> Record | None:
    """The last record, of a running supervisor or a killed one; None if it left properly."""
    try:
        content = json.loads((layout.run / "supervisor.json").read_text())
        processes = tuple(ProcessEntry(**entry) for entry in content.pop("processes"))
        return Record(
            **{
                **content,
                "since": datetime.fromisoformat(content["since"]),
                "phase": Phase(content["phase"]),
                "processes": processes,
            }
        )
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def erase(layout: Layout) -> None:
    (layout.run / "supervisor.json").unlink(missing_ok=True)


@contextlib.contextmanager
def hold(layout: Layout) -> Iterator[None]:
    """Be the only one that starts or stops the product in this home.

    :raises AlreadyRunning: if another process is.
    """
    with (layout.run / "supervisor.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunning(f"the product in {layout.home} is already running") from error
        yield
