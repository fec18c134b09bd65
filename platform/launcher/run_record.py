"""The record of the running supervisor of a home, for the commands that query it.

The lock decides *whether* a supervisor runs: the kernel releases it with the process. The record lists
*what* runs, and after a killed supervisor it lists what may be left.
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

from launcher.layout import HomeLayout, write_private


class SupervisorPhase(StrEnum):
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


class AlreadyRunning(RuntimeError):
    """Another supervisor, or a command that stops one, has the lock of this home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEntry:
    """One supervised process. ``pid`` is that of its guard, 0 while it waits for a restart."""

    name: str
    pid: int
    ticks: int
    restarts: int
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    pid: int
    ticks: int
    phase: SupervisorPhase
    since: datetime
    web_url: str
    gateway_url: str
    processes: tuple[ProcessEntry, ...]


def write(layout: HomeLayout, record: RunRecord) -> None:
    content: dict[str, Any] = {**asdict(record), "since": record.since.isoformat()}
    write_private(layout.run / "supervisor.json", json.dumps(content, indent=2) + "\n")


def read(layout: HomeLayout) -> RunRecord | None:
    """The last record, of a running supervisor or a killed one; None if it left properly."""
    try:
        content = json.loads((layout.run / "supervisor.json").read_text())
        processes = tuple(ProcessEntry(**entry) for entry in content.pop("processes"))
        return RunRecord(
            **{
                **content,
                "since": datetime.fromisoformat(content["since"]),
                "phase": SupervisorPhase(content["phase"]),
                "processes": processes,
            }
        )
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def erase(layout: HomeLayout) -> None:
    (layout.run / "supervisor.json").unlink(missing_ok=True)


@contextlib.contextmanager
def lock_home(layout: HomeLayout) -> Iterator[None]:
    """Hold the exclusive lock for starting and stopping the product in this home.

    :raises AlreadyRunning: if another process is.
    """
    with (layout.run / "supervisor.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunning(f"the product in {layout.home} is already running") from error
        yield
