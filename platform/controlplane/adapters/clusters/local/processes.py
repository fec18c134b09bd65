"""Processes as the kernel tells them: ``/proc``, with a pid never trusted without its start time.

A pid is reused, a pid together with its start time (clock ticks since boot) and the boot's id is not.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One process for all time (of this boot)."""

    pid: int
    #: Clock ticks between boot and its start: field 22 of ``/proc/<pid>/stat``.
    started: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        found = _read_proc_stat(pid)
        return None if found is None else cls(pid=pid, started=found.started)

    def alive(self) -> bool:
        """Whether it still runs; a zombie, or another process with its pid, does not count."""
        found = _read_proc_stat(self.pid)
        return found is not None and found.started == self.started and not found.zombie

    def signal(self, number: signal.Signals) -> None:
        """Deliver the signal to exactly this process; an exited one is no error."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return
        try:
            # The handle is taken first: what it names cannot change between the check and the signal.
            if self.alive():
                with suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


@dataclass(frozen=True, slots=True)
class _ProcStat:
    pid: int
    parent: int
    started: int
    zombie: bool

    @property
    def identity(self) -> ProcessIdentity:
        return ProcessIdentity(pid=self.pid, started=self.started)


def _read_proc_stat(pid: int) -> _ProcStat | None:
    try:
        text = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The command may hold spaces and brackets; the fixed fields follow the last bracket.
    fields = text[text.rindex(b")") + 2 :].split()
    return _ProcStat(pid, int(fields[1]), int(fields[19]), fields[0] in (b"Z", b"X"))


def _read_all_proc_stats() -> list[_ProcStat]:
    pids = [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]
    return [found for pid in pids if (found := _read_proc_stat(pid)) is not None]


def boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def live_descendants(root: int) -> list[ProcessIdentity]:
    """Every living process below ``root``, which itself is left out."""
    by_parent: dict[int, list[_ProcStat]] = {}
    for entry in _read_all_proc_stats():
        by_parent.setdefault(entry.parent, []).append(entry)
    found: list[ProcessIdentity] = []
    waiting = [root]
    while waiting:
        for entry in by_parent.get(waiting.pop(), ()):
            waiting.append(entry.pid)
            if not entry.zombie:
                found.append(entry.identity)
    return found


def reap_adopted_orphans(*, besides: int) -> None:
    """Collect the exits of orphans that this subreaper adopted; ``besides`` is left to its owner."""
    for entry in _read_all_proc_stats():
        if entry.parent == os.getpid() and entry.zombie and entry.pid != besides:
            with suppress(ChildProcessError):
                os.waitpid(entry.pid, os.WNOHANG)


def processes_of_account(uid: int) -> list[ProcessIdentity]:
    """Every living process that has that account as any of its four user ids."""
    found = []
    for entry in _read_all_proc_stats():
        try:
            status = (_PROC / str(entry.pid) / "status").read_text(errors="replace")
        except OSError:
            continue
        uids = next((line for line in status.splitlines() if line.startswith("Uid:")), "")
        if str(uid) in uids.split()[1:] and not entry.zombie:
            found.append(entry.identity)
    return found


def processes_with_variable(name: str, value: str) -> list[ProcessIdentity]:
    """Every living process that was started with that environment variable and that may be read."""
    wanted = f"{name}={value}".encode()
    found = []
    for entry in _read_all_proc_stats():
        try:
            environment = (_PROC / str(entry.pid) / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and not entry.zombie:
            found.append(entry.identity)
    return found


def kill_until_exited(find: Callable[[], Iterable[ProcessIdentity]], *, within: float) -> bool:
    """Kill whatever ``find`` returns, again and again, since a killed parent may just have forked.

    :returns: whether nothing is left; False after ``within`` seconds.
    """
    deadline = time.monotonic() + within
    while True:
        left = list(find())
        if not left:
            return True
        if time.monotonic() > deadline:
            return False
        for process in left:
            process.signal(signal.SIGKILL)
        time.sleep(0.01)


def resident_memory(processes: Iterable[ProcessIdentity]) -> int:
    """Sum of resident bytes. Pages that several share count once for each, so it is an upper bound."""
    total = 0
    for process in processes:
        with suppress(OSError, IndexError):
            total += int((_PROC / str(process.pid) / "statm").read_text().split()[1]) * _PAGE
    return total


def proportional_memory(processes: Iterable[ProcessIdentity]) -> int:
    """Sum of proportional set sizes in bytes: a page that n processes share counts 1/n for each.

    Source: ``smaps_rollup`` in proc(5). Slower than ``resident_memory``; where it may not be read, that
    process counts by its resident pages.
    """
    total = 0
    for process in processes:
        try:
            rollup = (_PROC / str(process.pid) / "smaps_rollup").read_text()
            line = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
            total += int(line.split()[1]) * 1024
        except (OSError, StopIteration):
            total += resident_memory((process,))
    return total


def kernel_oom_kills() -> int:
    """OOM kills by the kernel since boot; 0 where it does not count them."""
    try:
        lines = (_PROC / "vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
