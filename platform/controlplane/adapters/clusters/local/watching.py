"""One run of one process, from its start until every descendant is gone.

The supervisor is a subreaper: whatever a job forks, in whatever session, stays its descendant. The loop
sleeps in ``select`` until there is output, the process ends, or a tick has passed.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from controlplane.adapters.clusters.local import processes
from controlplane.adapters.clusters.local.endings import Ending, judge
from controlplane.adapters.clusters.local.listening import ProbeThread
from controlplane.adapters.clusters.local.logs import BoundedLog
from controlplane.adapters.clusters.local.processes import ProcessIdentity
from controlplane.domain.common.resources import format_bytes
from controlplane.ports.clusters import ExitCause
from controlplane.ports.launches import Launch, Role

#: Seconds between two looks at the stop request and the clock.
TICK = 0.1
#: Seconds between two looks at memory and descendants, which cost a walk through /proc.
LOOK = 0.5
#: Output that a process may leave in its pipe after its end.
_PIPE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a run learns from outside of it."""

    #: The deadline of a stop request in seconds since boot, or None.
    stop_deadline: Callable[[], float | None]
    #: A sentence on another replica that could not start, or nothing.
    broken_gang: Callable[[], str]
    #: Called with the bytes held and the processes of the group.
    measured: Callable[[int, tuple[ProcessIdentity, ...]], None]
    #: Called once, when the probe is answered.
    answering: Callable[[], None]


def now() -> float:
    """Seconds since boot, sleep included: the same for every process, untouched by clock changes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ProcessRun:
    """Watches a started process; ``watch`` returns when nothing of it is left."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        *,
        launch: Launch,
        role: Role,
        log: BoundedLog,
        around: Surroundings,
        deadline: float | None,
        probe: ProbeThread | None,
    ) -> None:
        self._process = process
        self._launch = launch
        self._role = role
        self._log = log
        self._around = around
        self._deadline = deadline
        self._probe = probe
        self._group = ProcessIdentity.of(process.pid)
        self._forced: Ending | None = None
        self._kill_at = float("inf")
        self._next_look = 0.0
        self._oom_kills = processes.kernel_oom_kills()
        #: Whether the probe ever succeeded.
        self.answered = False

    def watch(self) -> Ending:
        """Why it ended; by then the whole group is gone and its output is in the log."""
        output = self._output()
        with selectors.DefaultSelector() as selector:
            handle = os.pidfd_open(self._process.pid)
            try:
                selector.register(handle, selectors.EVENT_READ)
                selector.register(output, selectors.EVENT_READ)
                while self._process.poll() is None:
                    self._wait(selector, output)
                    self._check()
            finally:
                os.close(handle)
        while not processes.kill_until_gone(self._descendants, within=5):
            self._log.say("waiting for processes that do not end")
        if self._probe is not None:
            self._probe.close()
        self._drain(output)
        return judge(
            self._process.returncode,
            forced=self._forced,
            output=self._log.tail.decode(errors="replace"),
            last_line=self._log.last_line(),
            killed_by_kernel=processes.kernel_oom_kills() > self._oom_kills,
        )

    def _output(self) -> int:
        if self._process.stdout is None:
            raise ValueError("the process was started without a pipe for its output")
        output = self._process.stdout.fileno()
        os.set_blocking(output, False)
        return output

    def _wait(self, selector: selectors.BaseSelector, output: int) -> None:
        for key, _ in selector.select(TICK):
            if key.fd == output and self._read(output) == b"":
                selector.unregister(output)

    def _read(self, output: int) -> bytes | None:
        """What was read and logged: nothing at the end of the stream, None if there is none now."""
        try:
            content = os.read(output, 65536)
        except BlockingIOError:
            return None
        if content:
            self._log.write(content)
        return content

    def _drain(self, output: int) -> None:
        left = _PIPE
        while left > 0 and (content := self._read(output)):
            left -= len(content)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _descendants(self) -> list[ProcessIdentity]:
        processes.reap_adopted(besides=self._process.pid)
        return processes.descendants(os.getpid())

    def _check(self) -> None:
        at = now()
        self._check_stop(at)
        self._check_probe()
        if at >= self._next_look:
            self._next_look = at + LOOK
            self._look()
        if at >= self._kill_at:
            for process in self._descendants():
                process.signal(signal.SIGKILL)

    def _check_stop(self, at: float) -> None:
        requested = self._around.stop_deadline()
        if requested is not None:
            self._end(ExitCause.STOPPED, "stopped on request", kill_at=requested)
        elif self._deadline is not None and at >= self._deadline:
            limit = self._launch.run_within
            self._end(
                ExitCause.OUT_OF_TIME,
                f"stopped after its maximum run time of {limit}",
                kill_at=at + self._launch.grace.total_seconds(),
            )

    def _check_probe(self) -> None:
        if self._probe is None or self._role.probe is None or self.answered:
            return
        within = self._role.probe.start_within.total_seconds()
        if self._probe.answered:
            self.answered = True
            self._around.answering()
        elif time.monotonic() - self._probe.since > within:
            self._end(
                ExitCause.FAILED,
                f"GET {self._role.probe.path} was not answered with 200 within {within:g} seconds",
                kill_at=now(),
            )

    def _look(self) -> None:
        group = tuple(self._descendants())
        held, limit = processes.resident_memory(group), self._role.limits.memory
        if limit and held > limit:
            # Resident pages are an upper bound; only the slower, fair count may kill.
            held = processes.proportional_memory(group)
            if held > limit:
                self._end(
                    ExitCause.OUT_OF_MEMORY,
                    f"used {format_bytes(held)}, more than its limit of {format_bytes(limit)}",
                    kill_at=now(),
                )
        self._around.measured(held, group)
        broken = self._around.broken_gang()
        if broken:
            self._end(ExitCause.NOT_PREPARED, broken, kill_at=now())

    def _end(self, cause: ExitCause, message: str, *, kill_at: float) -> None:
        """Ask the group to end; the first reason is kept, an earlier deadline wins."""
        self._kill_at = min(self._kill_at, kill_at)
        if self._forced is None:
            self._forced = Ending(cause=cause, message=message)
            self._log.say(message)
            if self._group is not None and self._group.alive():
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGTERM)
