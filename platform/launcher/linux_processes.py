"""Process information from ``/proc``; a process is identified by pid and start time."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

#: Bit of CAP_DAC_READ_SEARCH in the capability sets of ``/proc/<pid>/status``.
_DAC_READ_SEARCH = 2


def _proc_stat_fields(pid: int) -> list[str]:
    """State, parent, group, session … of a process, as in proc(5) from the third field on."""
    try:
        # The command may contain spaces and parentheses; the fields begin after the last one.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def started_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None if it is gone or a zombie.

    A zombie counts as gone: it has no files, ports or memory, although signals still reach it.
    """
    fields = _proc_stat_fields(pid)
    return None if not fields or fields[0] in "ZX" else int(fields[19])


def is_process_running(pid: int, *, ticks: int) -> bool:
    """Return whether that process still runs, and not another with a reused pid."""
    return started_ticks(pid) == ticks


def kill_session(leader: int) -> None:
    """Kill every process of the session that ``leader`` began, the leader included."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _proc_stat_fields(int(entry.name))[3:4] == [str(leader)]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(entry.name), signal.SIGKILL)


def processes_working_in(folder: Path) -> tuple[int, ...]:
    """Return processes with that working folder, as far as this account can see."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if (entry / "cwd").readlink() == folder:
                    found.append(int(entry.name))
    return tuple(found)


def command_line(pid: int) -> tuple[str, ...]:
    """The arguments of a process, empty if it is gone, a zombie or a kernel thread."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return tuple(os.fsdecode(part) for part in raw.rstrip(b"\0").split(b"\0") if part)


def has_dac_read_search_capability() -> bool:
    """Return whether this process has CAP_DAC_READ_SEARCH, which children can inherit."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _DAC_READ_SEARCH & 1)
    return False
