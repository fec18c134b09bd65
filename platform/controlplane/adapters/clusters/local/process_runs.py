"""One run of one process: watched from its start until every descendant is gone, with the cause of its exit.

The supervisor is a subreaper: whatever a job forks, in whatever session, stays its descendant. The loop
sleeps in ``select`` until there is output, the process ends, or an interval has passed.

A port of a replica is held twice: by a locked file among Ninefold's own replicas, and by the check that nobody
listens. A stranger can still take it before the process binds it; the supervisor then starts again with another.
"""

from __future__ import annotations

import os
import random
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.adapters.clusters.local.replica_logs import BoundedLog
from controlplane.domain.common.reasons import Reason, ReasonedError
from controlplane.domain.common.resources import format_bytes
from controlplane.ports.clusters import (
    EXIT_OUT_OF_MEMORY,
    ExitCause,
    ReplicaPhase,
    exit_cause_of_code,
    shows_full_disk,
)
from controlplane.ports.launches import (
    Launch,
    LaunchRole,
    ReadinessProbe,
    unanswered_probe_reason,
)
from process_supervision import processes
from process_supervision.files import try_lock
from process_supervision.processes import (
    OutputPipe,
    ProcessIdentity,
    bind_error,
    http_check_error,
    seconds_since_boot,
)


class NoPortFree(ReasonedError):
    """Every port of the range is taken."""


@dataclass(slots=True)
class PortLease:
    """Ports by name, held until ``release`` or the end of this process."""

    numbers: dict[str, int] = field(default_factory=dict)
    _locks: list[int] = field(default_factory=list)

    @classmethod
    def pick(cls, names: Iterable[str], *, folder: Path, first: int, last: int) -> PortLease:
        """One free port for each name, in a random order so that a taken one is not met again.

        :raises NoPortFree: if the range is used up.
        """
        lease = cls()
        candidates = random.sample(range(first, last + 1), last - first + 1)
        for name in names:
            while True:
                if not candidates:
                    lease.release()
                    raise NoPortFree(
                        "launch.port.exhausted",
                        "no port between {first} and {last} is free",
                        first=first,
                        last=last,
                    )
                number = candidates.pop()
                lock = try_lock(folder / str(number))
                if lock is None:
                    continue
                if bind_error(number) is None:
                    lease.numbers[name] = number
                    lease._locks.append(lock)
                    break
                os.close(lock)
        return lease

    def release(self) -> None:
        while self._locks:
            os.close(self._locks.pop())
        self.numbers.clear()


class ProbeThread:
    """Asks ``GET path`` beside the supervisor's loop: often until the answer is 200, then once in each period."""

    INTERVAL = 0.2

    def __init__(self, probe: ReadinessProbe, *, port: int) -> None:
        self._probe, self._port = probe, port
        self._answered = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._probe_until_stopped, name="probe", daemon=True)
        self.since = time.monotonic()
        #: Consecutive failures since the last success, once there was one.
        self.failures = 0
        #: What the newest of these failures was.
        self.error = ""
        self._thread.start()

    @property
    def answered(self) -> bool:
        """Whether it was ever answered."""
        return self._answered.is_set()

    def close(self) -> None:
        """No thread is left when this returns: the next process is forked after it."""
        self._closed.set()
        self._thread.join()

    def _probe_until_stopped(self) -> None:
        while http_check_error(self._probe.path, port=self._port):
            if self._closed.wait(self.INTERVAL):
                return
        self._answered.set()
        period, timeout = (
            each.total_seconds() for each in (self._probe.period, self._probe.timeout)
        )
        wait = period
        while not self._closed.wait(wait):
            began = time.monotonic()
            self.error = http_check_error(self._probe.path, port=self._port, within=timeout)
            self.failures = self.failures + 1 if self.error else 0
            wait = max(0.0, began + period - time.monotonic())


#: Seconds between two checks of the stop request and the deadline.
POLL_INTERVAL = 0.1
#: Seconds between two checks of memory and descendants, each of which walks /proc.
MEASURE_INTERVAL = 0.5
#: Output that a process may leave in its pipe after its end.
_PIPE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCallbacks:
    """What a run learns from outside of it."""

    #: The deadline of a stop request in seconds since boot, or None.
    stop_deadline: Callable[[], float | None]
    #: A sentence on another replica that could not start, or nothing.
    broken_gang: Callable[[], str]
    #: Called with the bytes held and the processes of the group.
    measured: Callable[[int, tuple[ProcessIdentity, ...]], None]
    #: Called with RUNNING when the probe is answered, the first time and again, and with STARTING when it is not
    #: any more.
    probed: Callable[[ReplicaPhase], None]


class ProcessRun:
    """Watches a started process; ``watch`` returns when nothing of it is left."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        *,
        launch: Launch,
        role: LaunchRole,
        log: BoundedLog,
        callbacks: RunCallbacks,
        deadline: float | None,
        probe: ProbeThread | None,
    ) -> None:
        self._process = process
        self._output = OutputPipe(process)
        self._launch = launch
        self._role = role
        self._log = log
        self._callbacks = callbacks
        self._deadline = deadline
        self._probe = probe
        self._group = ProcessIdentity.of(process.pid)
        self._forced: ProcessExit | None = None
        self._kill_at = float("inf")
        self._next_measurement = 0.0
        self._oom_kills = processes.kernel_oom_kills()
        #: Whether the probe ever succeeded.
        self.answered = False
        self._phase = ReplicaPhase.STARTING

    def watch(self) -> ProcessExit:
        """Why it ended; by then the whole group has exited and its output is in the log."""
        with selectors.DefaultSelector() as selector:
            handle = os.pidfd_open(self._process.pid)
            try:
                selector.register(handle, selectors.EVENT_READ)
                selector.register(self._output, selectors.EVENT_READ)
                while self._process.poll() is None:
                    self._wait_for_output(selector)
                    self._check_limits()
            finally:
                os.close(handle)
        while not processes.kill_until_exited(self._live_descendants, within=5):
            self._log.write_message("waiting for processes that do not end")
        if self._probe is not None:
            self._probe.close()
        self._drain_output()
        return classify_exit(
            self._process.returncode,
            forced=self._forced,
            output=self._log.tail.decode(errors="replace"),
            last_line=self._log.last_line(),
            killed_by_kernel=processes.kernel_oom_kills() > self._oom_kills,
        )

    def _wait_for_output(self, selector: selectors.BaseSelector) -> None:
        for key, _ in selector.select(POLL_INTERVAL):
            if key.fileobj is self._output:
                self._read_and_log()
                if self._output.at_end:
                    selector.unregister(self._output)

    def _read_and_log(self) -> int:
        """Bytes that were read and logged."""
        content = self._output.read()
        if content:
            self._log.write(content)
        return len(content)

    def _drain_output(self) -> None:
        left = _PIPE
        while left > 0 and (count := self._read_and_log()):
            left -= count
        self._output.close()

    def _live_descendants(self) -> list[ProcessIdentity]:
        processes.reap_adopted_orphans(besides=self._process.pid)
        return processes.live_descendants(os.getpid())

    def _check_limits(self) -> None:
        at = seconds_since_boot()
        self._check_stop(at)
        self._check_probe()
        if at >= self._next_measurement:
            self._next_measurement = at + MEASURE_INTERVAL
            self._measure_memory()
        if at >= self._kill_at:
            for process in self._live_descendants():
                process.signal(signal.SIGKILL)

    def _check_stop(self, at: float) -> None:
        requested = self._callbacks.stop_deadline()
        if requested is not None:
            self._request_termination(ExitCause.STOPPED, "stopped on request", kill_at=requested)
        elif self._deadline is not None and at >= self._deadline:
            limit = self._launch.run_within
            self._request_termination(
                ExitCause.OUT_OF_TIME,
                f"stopped after its maximum run time of {limit}",
                kill_at=at + self._launch.grace.total_seconds(),
            )

    def _check_probe(self) -> None:
        if self._probe is None or self._role.probe is None:
            return
        if self.answered:
            self._check_answers(self._probe, self._role.probe)
            return
        within = self._role.probe.start_within.total_seconds()
        if self._probe.answered:
            self.answered = True
            self._enter(ReplicaPhase.RUNNING)
        elif time.monotonic() - self._probe.since > within:
            self._request_termination(
                ExitCause.FAILED,
                f"GET {self._role.probe.path} was not answered with 200 within {within:g} seconds",
                kill_at=seconds_since_boot(),
            )

    def _check_answers(self, thread: ProbeThread, probe: ReadinessProbe) -> None:
        """End a process that hangs. One that is stopping may refuse checks while it ends its open requests."""
        if self._forced is not None:
            return
        # Read once: the thread may reset it.
        failures = thread.failures
        unready = failures >= probe.unready_threshold
        self._enter(ReplicaPhase.STARTING if unready else ReplicaPhase.RUNNING)
        if failures >= probe.failure_threshold:
            self._request_termination(
                ExitCause.FAILED,
                Reason(
                    "attempt.exit.last_line",
                    "{reason}: {detail}",
                    reason=unanswered_probe_reason(probe.unanswered_limit),
                    detail=thread.error,
                ),
                kill_at=seconds_since_boot(),
            )

    def _enter(self, phase: ReplicaPhase) -> None:
        if phase is not self._phase:
            self._phase = phase
            self._callbacks.probed(phase)

    def _measure_memory(self) -> None:
        group = tuple(self._live_descendants())
        memory, limit = processes.resident_memory(group), self._role.limits.memory
        if limit and memory > limit:
            # Resident pages are an upper bound; only the slower, fair count may kill.
            memory = processes.proportional_memory(group)
            if memory > limit:
                self._request_termination(
                    ExitCause.OUT_OF_MEMORY,
                    f"used {format_bytes(memory)}, more than its limit of {format_bytes(limit)}",
                    kill_at=seconds_since_boot(),
                )
        self._callbacks.measured(memory, group)
        broken = self._callbacks.broken_gang()
        if broken:
            self._request_termination(ExitCause.NOT_PREPARED, broken, kill_at=seconds_since_boot())

    def _request_termination(self, cause: ExitCause, message: str, *, kill_at: float) -> None:
        """Request the group's end; the first reason is kept, an earlier deadline wins."""
        self._kill_at = min(self._kill_at, kill_at)
        if self._forced is None:
            self._forced = ProcessExit(cause=cause, message=message)
            self._log.write_message(message)
            if self._group is not None and self._group.alive():
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGTERM)


#: How much of the end of the output may name the reason.
_LAST_LINES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    cause: ExitCause
    message: str
    #: As in a shell: 128 + n for a process ended by signal n; None if nothing was started.
    exit_code: int | None = None


def classify_exit(
    returncode: int,
    *,
    forced: ProcessExit | None,
    output: str,
    last_line: str,
    killed_by_kernel: bool,
) -> ProcessExit:
    """The ending of a process by its return code (negative: the signal), unless ``forced`` overrides it.

    ``output`` is the end of what it printed; ``killed_by_kernel`` says that the kernel killed for want of
    memory while it ran.
    """
    code = returncode if returncode >= 0 else 128 - returncode
    if forced is not None:
        return ProcessExit(cause=forced.cause, message=forced.message, exit_code=code)
    if code == 0:
        return ProcessExit(
            cause=ExitCause.FINISHED,
            message=Reason("attempt.exit.finished", "finished"),
            exit_code=0,
        )
    end = "\n".join(output.splitlines()[-_LAST_LINES:])
    message: str
    if shows_full_disk(code, end):
        cause, message = ExitCause.DISK_FULL, Reason("attempt.exit.disk_full", "the disk is full")
    elif code == 128 + signal.SIGKILL and killed_by_kernel:
        cause, message = (
            ExitCause.OUT_OF_MEMORY,
            Reason(
                "attempt.exit.killed_by_kernel",
                "killed by the kernel because the machine was out of memory",
            ),
        )
    elif code == EXIT_OUT_OF_MEMORY:
        cause, message = (
            ExitCause.OUT_OF_MEMORY,
            Reason("attempt.exit.allocation_failed", "the program failed to allocate memory"),
        )
    elif returncode < 0:
        cause = exit_cause_of_code(code)
        message = Reason(
            "attempt.exit.killed_by_signal",
            "killed by {signal}",
            signal=_signal_name(-returncode),
        )
    else:
        cause = exit_cause_of_code(code)
        message = Reason("attempt.exit.failed", "exited with code {exit_code}", exit_code=code)
    if last_line:
        message = Reason(
            "attempt.exit.last_line", "{reason}: {detail}", reason=message, detail=last_line
        )
    return ProcessExit(cause=cause, message=message, exit_code=code)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return Reason("attempt.exit.signal_number", "signal {number}", number=number)
