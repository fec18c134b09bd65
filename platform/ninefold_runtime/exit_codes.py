"""How a task ends: exit codes, the errors behind them, and SIGTERM.

Every known error ends the process with one line on standard error that says what was wrong; a traceback is
kept for unforeseen ones. Out of disk and out of memory come in many disguises (an ``OSError``, a
``SafetensorError``, a bare ``RuntimeError`` of the serialiser), so they are told apart in one place.

On SIGTERM a task that cannot save ends at once; inside ``StopSignalHandler.deferred()`` the request is only
remembered, and the task reads ``requested`` at the next point where saving makes sense.
"""

from __future__ import annotations

import errno
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_SPACE_MESSAGES = ("no space left on device", "os error 28", "disk quota exceeded")
#: torch's archive writer loses the errno of a short write.
_WRITER_MESSAGES = ("pytorchstreamwriter", "inline_container")
_NO_MEMORY_MESSAGES = ("out of memory", "can't allocate memory", "failed to allocate")
#: Below this many free bytes a failed write of torch is taken for a full disk.
_NEARLY_FULL = 16 * 1024 * 1024


class ExitCode(IntEnum):
    """What the exit code of the process means."""

    FINISHED = 0
    #: Unforeseen; the traceback is in the log.
    FAILED = 1
    #: The spec or an input is wrong; trying again cannot help.
    BAD_INPUT = 2
    #: The loss became infinite or not a number.
    DIVERGED = 3
    #: The control plane refused what was reported, or stayed away too long.
    NOT_REPORTED = 4
    #: A card did not pass its burn-in; the result names the test.
    UNFIT = 5
    OUT_OF_MEMORY = 12
    DISK_FULL = 28
    #: Asked to end by SIGTERM; what could be saved is saved.
    STOPPED = 143


EXIT_DISK_FULL = int(ExitCode.DISK_FULL)
EXIT_OUT_OF_MEMORY = int(ExitCode.OUT_OF_MEMORY)


class TaskError(Exception):
    """An end that is understood: one line for the reader, one code for the supervisor."""

    code = ExitCode.FAILED


class InvalidTaskInput(TaskError):
    code = ExitCode.BAD_INPUT


class TrainingDiverged(TaskError):
    code = ExitCode.DIVERGED


class ReportNotDelivered(TaskError):
    code = ExitCode.NOT_REPORTED


class OutOfMemory(TaskError):
    code = ExitCode.OUT_OF_MEMORY


class DiskFull(TaskError):
    code = ExitCode.DISK_FULL


class TaskStopped(TaskError):
    code = ExitCode.STOPPED


def task_error_of(error: BaseException, *, work: Path) -> TaskError | None:
    """The task error for any exception, or None where it is not a known one."""
    for link in _exception_chain(error):
        if isinstance(link, TaskError):
            return link
        if _is_disk_full(link, work=work):
            free = _free_bytes(work)
            return DiskFull(
                f"the disk is full: {free} bytes are free in the working folder; "
                "free some space, or keep fewer checkpoints"
            )
        if _is_out_of_memory(link):
            return OutOfMemory(
                f"out of memory: {_first_line(link)}; use a smaller batch_size or max_length"
            )
    return None


def _exception_chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _is_disk_full(error: BaseException, *, work: Path) -> bool:
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        return True
    text = str(error).lower()
    if any(phrase in text for phrase in _NO_SPACE_MESSAGES):
        return True
    return any(phrase in text for phrase in _WRITER_MESSAGES) and _free_bytes(work) < _NEARLY_FULL


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(phrase in text for phrase in _NO_MEMORY_MESSAGES)


def _free_bytes(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


class StopSignalHandler:
    """Whether a stop was requested of this process."""

    def __init__(self) -> None:
        self.requested = False
        self._deferred = False

    def listen(self) -> None:
        """Take over SIGTERM and SIGINT; only the main thread may call it."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Inside, a request is remembered rather than raised.

        :raises TaskStopped: on entry, if the request came before.
        """
        if self.requested:
            raise TaskStopped("stopped before it began")
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False

    def _on_signal(self, number: int, _frame: object) -> None:
        first = not self.requested
        self.requested = True
        if first and not self._deferred:
            raise TaskStopped(f"stopped by {signal.Signals(number).name}")
