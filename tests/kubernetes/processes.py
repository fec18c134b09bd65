"""Programs that run on, each with a log and a note of its process; ended by those notes, and nothing else."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

ENDED_WITHIN = 15.0
#: Those that this process started, by their number: nobody else reaps them.
_OURS: dict[int, subprocess.Popen[bytes]] = {}


class DidNotStart(RuntimeError):
    """A program ended or did not answer; the message has its last words."""


def start(name: str, command: Sequence[str | Path], *, folder: Path) -> None:
    """Start it in a session of its own; ``folder`` gets its log and the note of its process."""
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder,
        )
    _OURS[process.pid] = process
    started = psutil.Process(process.pid).create_time()
    (folder / f"{name}.pid").write_text(f"{process.pid} {started}")


def running(name: str, *, folder: Path) -> psutil.Process | None:
    """The process that the note is about; None if it has ended, whoever has its number now."""
    note = folder / f"{name}.pid"
    if not note.exists():
        return None
    pid, started = note.read_text().split()
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(int(pid))
        if process.create_time() == float(started) and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


def stop(name: str, *, folder: Path, hard: bool = False) -> None:
    """End it, and wait until it has; ``hard`` is ``kill -9``."""
    process = running(name, folder=folder)
    if process is not None:
        process.send_signal(signal.SIGKILL if hard else signal.SIGTERM)
        _, left = psutil.wait_procs([process], timeout=ENDED_WITHIN)
        for one in left:
            one.kill()
        psutil.wait_procs(left, timeout=ENDED_WITHIN)
        if ours := _OURS.pop(process.pid, None):
            ours.wait(ENDED_WITHIN)
    (folder / f"{name}.pid").unlink(missing_ok=True)


def until(ready: Callable[[], bool], *, name: str, folder: Path, within: float) -> None:
    """:raises DidNotStart: if it ends before it is ready, or takes longer."""
    limit = time.monotonic() + within
    while not ready():
        ended = running(name, folder=folder) is None
        if ended or time.monotonic() > limit:
            log_lines = (folder / f"{name}.log").read_text(errors="replace").splitlines()[-8:]
            what = "ended" if ended else f"was not ready within {within:g} s"
            raise DidNotStart("\n".join((f"{name} {what}:", *log_lines)))
        time.sleep(0.1)
