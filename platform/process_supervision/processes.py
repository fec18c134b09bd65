"""Identify, start, read and stop processes; check what they listen on.

A pid is never trusted without its start time in ``/proc``: a pid is reused, a pid together with its start time
(clock ticks since boot) and the boot's id is not.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_POLL_SECONDS = 0.02
_READ_BYTES = 64 * 1024
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One process for all time (of this boot)."""

    pid: int
    #: Clock ticks between boot and its start: field 22 of ``/proc/<pid>/stat``.
    started: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """None if it is gone or a zombie, which has no files, ports or memory although signals reach it."""
        found = _read_proc_stat(pid)
        return None if found is None or found.zombie else cls(pid=pid, started=found.started)

    @classmethod
    def of_this_process(cls) -> Self:
        """:raises RuntimeError: if ``/proc`` is not mounted."""
        found = cls.of(os.getpid())
        if found is None:
            raise RuntimeError("/proc does not show this process: is it mounted?")
        return found

    def alive(self) -> bool:
        """Whether it still runs; a zombie, or another process with its pid, does not count."""
        found = _read_proc_stat(self.pid)
        return found is not None and found.started == self.started and not found.zombie

    def stop(self, *signals: signal.Signals, within: float) -> bool:
        """Send the signals in turn, each with ``within`` seconds to exit; return whether it has exited."""
        for number in signals:
            self.signal(number)
            if wait_until(lambda: not self.alive(), seconds=within):
                return True
        return False

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
    session: int
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
    zombie = fields[0] in (b"Z", b"X")
    return _ProcStat(pid, int(fields[1]), int(fields[3]), int(fields[19]), zombie)


def _read_all_proc_stats() -> list[_ProcStat]:
    pids = [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]
    return [found for pid in pids if (found := _read_proc_stat(pid)) is not None]


def boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def seconds_since_boot() -> float:
    """Seconds since boot, sleep included: the same for every process, untouched by clock changes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def command_line(pid: int) -> tuple[str, ...]:
    """The arguments of a process, empty if it is gone, a zombie or a kernel thread."""
    try:
        raw = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(part) for part in raw.rstrip(b"\0").split(b"\0") if part)


def has_capabilities(*numbers: int) -> bool:
    """Whether this process has all those capabilities, by their numbers in linux/capability.h."""
    effective = int(_status_field(_PROC / "self", "CapEff")[0], 16)
    return all(effective >> number & 1 for number in numbers)


def _status_field(process: Path, name: str) -> list[str]:
    lines = (process / "status").read_text(errors="replace").splitlines()
    return next((line for line in lines if line.startswith(f"{name}:")), "").split()[1:]


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


def processes_of_session(leader: int) -> list[ProcessIdentity]:
    """Every living process of the session that ``leader`` began, the leader included."""
    found = _read_all_proc_stats()
    return [entry.identity for entry in found if entry.session == leader and not entry.zombie]


def processes_of_account(uid: int) -> list[ProcessIdentity]:
    """Every living process that has that account as any of its four user ids."""
    return _find_processes(lambda process: str(uid) in _status_field(process, "Uid"))


def processes_with_variable(name: str, value: str) -> list[ProcessIdentity]:
    """Every living process that was started with that environment variable and that may be read."""
    wanted = f"{name}={value}".encode()
    return _find_processes(
        lambda process: wanted in (process / "environ").read_bytes().split(b"\0")
    )


def processes_working_in(folder: Path) -> list[ProcessIdentity]:
    """Every living process with that working folder, as far as this account can see."""
    return _find_processes(lambda process: (process / "cwd").readlink() == folder)


def _find_processes(matches: Callable[[Path], bool]) -> list[ProcessIdentity]:
    found = []
    for entry in _read_all_proc_stats():
        with suppress(OSError):
            if not entry.zombie and matches(_PROC / str(entry.pid)):
                found.append(entry.identity)
    return found


def wait_until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


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


def start_in_session(
    command: Sequence[str | Path],
    *,
    output: int | IO[bytes] = subprocess.PIPE,
    before_exec: Callable[[], None] | None = None,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start the leader of a session of its own, without input; errors go to ``output`` as well.

    :param before_exec: called in the new process; requires that this one has no second thread.
    :param options: further arguments of ``subprocess.Popen``.
    :raises OSError: if the command does not exist or may not be executed.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=before_exec,  # noqa: PLW1509 - see above
        **options,
    )


class OutputPipe:
    """Reads the output of a process that was started with a pipe, and never waits for it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdout is None:
            raise ValueError("the process was started without a pipe for its output")
        self._stream = process.stdout
        self._rest = b""
        #: Whether no process can write to it any more.
        self.at_end = False
        os.set_blocking(self._stream.fileno(), False)

    def fileno(self) -> int:
        """Where output can be waited for."""
        return self._stream.fileno()

    def read(self) -> bytes:
        """What has been printed since the last call, at most 64 KiB of it."""
        try:
            content = os.read(self._stream.fileno(), _READ_BYTES)
        except BlockingIOError:
            return b""
        self.at_end = not content
        return content

    def lines(self) -> list[str]:
        """The complete lines printed since the last call; one of more than 64 KiB is divided."""
        data = self._rest
        while len(data) < 4 * _READ_BYTES and (content := self.read()):
            data += content
        *whole, self._rest = data.split(b"\n")
        if len(self._rest) > _READ_BYTES:
            whole.append(self._rest)
            self._rest = b""
        return [line.decode(errors="replace").rstrip("\r") for line in whole]

    def remaining_lines(self) -> list[str]:
        """The remaining output after the exit, an unfinished line included."""
        remaining = self.lines()
        if self._rest:
            remaining.append(self._rest.decode(errors="replace"))
            self._rest = b""
        return remaining

    def close(self) -> None:
        self._stream.close()


def http_check_error(
    path: str, *, port: int | None, host: str = LOOPBACK, within: float = 2.0
) -> str:
    """Why ``GET path`` is not answered with 200 in ``within`` seconds; empty if it is.

    Directly, whatever proxy the environment names for the outside.
    """
    connection = http.client.HTTPConnection(host, port, timeout=within)
    try:
        connection.request("GET", path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"{host}:{port} is unreachable: {error}"
    finally:
        connection.close()
    return "" if status == http.client.OK else f"{path} answers {status}"


def bind_error(port: int, *, host: str = LOOPBACK) -> OSError | None:
    """Why no server could listen there now; None if one could."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do: connections that are only fading away are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None
