"""Why a process group is no more: the pure judgement of an exit."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from controlplane.ports.clusters import ExitCause, cause_of_exit

#: What ``ninefold_runtime.exits`` says of itself; other programs are judged by their last lines.
EXIT_DISK_FULL = 28
EXIT_OUT_OF_MEMORY = 12
_DISK_FULL_WORDS = ("No space left on device", "Errno 28", "Disk quota exceeded")
#: How much of the end of the output may name the reason.
_LAST_LINES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    cause: ExitCause
    message: str
    #: As a shell tells it: 128 + n for a process that signal n ended; None if nothing was started.
    exit_code: int | None = None


def judge(
    returncode: int,
    *,
    forced: Ending | None,
    output: str,
    last_line: str,
    killed_by_kernel: bool,
) -> Ending:
    """The ending of a process by its return code (negative: the signal), unless ``forced`` knows better.

    ``output`` is the end of what it printed; ``killed_by_kernel`` says that the kernel killed for want of
    memory while it ran.
    """
    code = returncode if returncode >= 0 else 128 - returncode
    if forced is not None:
        return Ending(cause=forced.cause, message=forced.message, exit_code=code)
    if code == 0:
        return Ending(cause=ExitCause.FINISHED, message="finished", exit_code=0)
    end = "\n".join(output.splitlines()[-_LAST_LINES:])
    if code == EXIT_DISK_FULL or any(words in end for words in _DISK_FULL_WORDS):
        cause, message = ExitCause.DISK_FULL, "the disk is full"
    elif code == 128 + signal.SIGKILL and killed_by_kernel:
        cause, message = (
            ExitCause.OUT_OF_MEMORY,
            "killed by the kernel: the machine had no memory left",
        )
    elif code == EXIT_OUT_OF_MEMORY:
        cause, message = ExitCause.OUT_OF_MEMORY, "it could not get the memory that it needs"
    elif returncode < 0:
        cause, message = cause_of_exit(code), f"killed by {_name(-returncode)}"
    else:
        cause, message = cause_of_exit(code), f"exited with code {code}"
    if last_line:
        message = f"{message}: {last_line}"
    return Ending(cause=cause, message=message, exit_code=code)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
