"""Run one process so that neither it nor the supervisor outlives the other.

The kernel signals a process when its parent dies (PR_SET_PDEATHSIG), but only that one process: the worker
processes of a server would stay. So each supervised process runs under a guard, in a process group of its
own::

    supervisor ── guard ── uvicorn, celery, postgres … ── its workers
                  (session leader)  (group leader; the guard ends the whole group)

The guard sends the configured stop signal, waits for the grace period, then kills the group. Processes that
have left the group with ``setsid`` are not affected: jobs of the local cluster do so on purpose and
continue.

Run as a file with ``python -I -S``: it imports the standard library only and starts in milliseconds. Not even
its own package can be imported then, so what it shares with other supervisors is defined here.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

_PR_SET_PDEATHSIG = 1
_WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
_LIBC = ctypes.CDLL(None, use_errno=True)


def set_process_option(option: int, value: int) -> None:
    """Call prctl(2) for this process.

    :raises OSError: if the kernel refuses.
    """
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def set_parent_death_signal(*, parent: int, by: signal.Signals) -> None:
    """Have the kernel send ``by`` to this process when its parent dies; a change of account ends that."""
    set_process_option(_PR_SET_PDEATHSIG, int(by))
    if os.getppid() != parent:
        # The parent died before prctl.
        os.kill(os.getpid(), signal.SIGKILL)


def _before_exec(*, guard_pid: int, stop_with: signal.Signals) -> Callable[[], None]:
    def prepare() -> None:
        # A shell starts what it puts into the background with SIGINT and SIGQUIT ignored, and that is
        # inherited: a command that stops on one of them would never receive it.
        signal.signal(stop_with, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        set_parent_death_signal(parent=guard_pid, by=stop_with)

    return prepare


def _kill_process_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _has_ended(pid: int) -> bool:
    # Left as a zombie until its group is ended: meanwhile the number cannot be given to another.
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def run_guarded(
    *, command: Sequence[str], parent: int, stop_with: signal.Signals, grace_seconds: float
) -> int:
    """Run ``command`` until it ends or this process receives a stop signal.

    :returns: the command's exit status; 128 + the signal's number if one ended it.
    """
    # Blocked before anything else, so that no signal is lost between two waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    set_parent_death_signal(parent=parent, by=signal.SIGTERM)
    try:
        child = subprocess.Popen(
            command,
            process_group=0,
            preexec_fn=_before_exec(guard_pid=os.getpid(), stop_with=stop_with),  # noqa: PLW1509 - one thread
        )
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        sys.stderr.flush()
        return 127
    deadline: float | None = None
    while not _has_ended(child.pid):
        remaining = None if deadline is None else deadline - time.monotonic()
        if remaining is not None and remaining <= 0:
            break
        caught = (
            signal.sigwaitinfo(_WATCHED)
            if remaining is None
            else signal.sigtimedwait(_WATCHED, remaining)
        )
        if caught is not None and caught.si_signo != signal.SIGCHLD and deadline is None:
            deadline = time.monotonic() + grace_seconds
            child.send_signal(stop_with)
    _kill_process_group(child.pid)
    status = child.wait()
    return status if status >= 0 else 128 - status


def main() -> int:
    parser = argparse.ArgumentParser(prog="process_guard")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--signal", default="SIGTERM")
    parser.add_argument("--grace", type=float, default=10.0)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    return run_guarded(
        command=options.command,
        parent=options.parent,
        stop_with=signal.Signals[options.signal],
        grace_seconds=options.grace,
    )


if __name__ == "__main__":
    sys.exit(main())
