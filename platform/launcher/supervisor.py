"""Supervise the processes of the product in one thread that waits for output, signals and timers.

Each process runs under a process guard (see ``process_guard``), so that a killed supervisor leaves nothing
behind. The main loop reads output, detects processes that have exited, and restarts those that are due.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from launcher.home_folder import ProcessEntry
from launcher.process_output import RotatingLog, TerminalOutput
from launcher.services import LogLineProbe, ServiceSpec, SetupStep
from process_supervision import process_guard
from process_supervision.processes import (
    OutputPipe,
    ProcessIdentity,
    kill_until_exited,
    processes_of_session,
    start_in_session,
)

#: In addition to the grace period of a service, for the guard to end the group and exit.
_GUARD_SECONDS = 5.0


def describe_exit(status: int) -> str:
    """Describe an exit status; a guard reports signals as a shell does, as 128 + number."""
    number = -status if status < 0 else status - 128
    if number > 0 and number in {member.value for member in signal.Signals}:
        return f"killed by {signal.Signals(number).name}"
    return f"exit status {status}"


class GuardedProcess:
    """A running command under a guard. ``pid`` is that of the guard."""

    def __init__(
        self,
        *,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        stop_with: signal.Signals = signal.SIGTERM,
        grace_seconds: float = 10.0,
    ) -> None:
        self.grace_seconds = grace_seconds + _GUARD_SECONDS
        # Ctrl-C at the terminal is for the supervisor alone: it stops the others in order.
        self._process = start_in_session(
            [
                *(sys.executable, "-I", "-S", str(process_guard.__file__)),
                *("--parent", str(os.getpid()), "--signal", stop_with.name),
                *("--grace", str(grace_seconds), "--", *command),
            ],
            cwd=folder,
            env=environment,
        )
        self.pid = self._process.pid
        identity = ProcessIdentity.of(self.pid)
        #: The start time that identifies the guard together with ``pid``; 0 if it ended at once.
        self.ticks = 0 if identity is None else identity.started
        self.output = OutputPipe(self._process)

    @classmethod
    def of_service(
        cls, service: ServiceSpec, *, folder: Path, environment: Mapping[str, str]
    ) -> GuardedProcess:
        return cls(
            command=service.command,
            folder=folder,
            environment=environment,
            stop_with=service.stop_with,
            grace_seconds=service.grace_seconds,
        )

    @classmethod
    def of_step(
        cls, step: SetupStep, *, folder: Path, environment: Mapping[str, str]
    ) -> GuardedProcess:
        return cls(command=step.command, folder=folder, environment=environment)

    def exit_status(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        """Kill the guard and all processes of its session at once."""
        if self._process.poll() is None:
            kill_until_exited(lambda: processes_of_session(self.pid), within=_GUARD_SECONDS)
            self._process.wait()


_POLL_SECONDS = 0.25
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SetupStepFailed(RuntimeError):
    """A preparing command failed; the message ends with its last lines."""


class SupervisorStopRequested(Exception):
    """A stop signal arrived during another wait."""


@dataclass(slots=True, kw_only=True)
class _SupervisedService:
    """A service and its current process."""

    service: ServiceSpec
    log: RotatingLog
    child: GuardedProcess | None = None
    ready: bool = False
    failures: int = 0
    restarts: int = 0
    started_at: float = 0.0
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    #: On the monotonic clock; only while there is no child.
    due_at: float = 0.0


class ProcessSupervisor:
    """A context manager: signals are caught inside, and at the end nothing is left running."""

    def __init__(
        self,
        *,
        folder: Path,
        environment: Mapping[str, str],
        logs: Path,
        terminal: TerminalOutput,
        policy: RestartPolicy | None = None,
    ) -> None:
        self._folder = folder
        self.environment = dict(environment)
        self._logs = logs
        self._terminal = terminal
        self._policy = policy or RestartPolicy()
        #: Called when the set of running processes changes.
        self.on_change: Callable[[], None] = _do_nothing
        self._services: dict[str, _SupervisedService] = {}
        self._selector = selectors.DefaultSelector()
        self._signals = 0

    def __enter__(self) -> ProcessSupervisor:
        # A signal must end a wait: Python writes its number to this socket.
        self._wakeup_reader, inner = socket.socketpair()
        self._wakeup_writer = inner
        self._wakeup_reader.settimeout(0)
        inner.settimeout(0)
        self._old_wakeup = signal.set_wakeup_fd(inner.fileno(), warn_on_full_buffer=False)
        self._old_handlers = {
            number: signal.signal(number, self._on_signal)
            for number in (*_STOP_SIGNALS, signal.SIGCHLD)
            # A signal that is ignored at the start, as by nohup, stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        self._selector.register(self._wakeup_reader, selectors.EVENT_READ)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._old_wakeup)
            self._selector.close()
            self._wakeup_reader.close()
            self._wakeup_writer.close()

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._signals += 1

    @property
    def processes(self) -> tuple[ProcessEntry, ...]:
        """Return the supervised processes, in the order in which they were added."""
        return tuple(
            ProcessEntry(
                name=managed.service.name,
                pid=managed.child.pid if managed.child else 0,
                ticks=managed.child.ticks if managed.child else 0,
                restarts=managed.restarts,
                since=managed.since.isoformat(timespec="seconds"),
            )
            for managed in self._services.values()
        )

    def run_step(self, step: SetupStep) -> None:
        """Run a command to its end while everything else keeps running.

        :raises SetupStepFailed: if it fails.
        :raises SupervisorStopRequested: if a signal comes first; the command is stopped.
        """
        log = RotatingLog(self._logs / "setup.log")
        child = GuardedProcess.of_step(step, folder=self._folder, environment=self.environment)
        printed: list[str] = []
        self._selector.register(child.output, selectors.EVENT_READ)
        try:
            while child.exit_status() is None:
                self._run_once()
                self._raise_if_stopping()
                printed += child.output.lines()
                if child.output.at_end:
                    self._unregister_child(child)
            printed += child.output.remaining_lines()
        finally:
            self._stop_children([child])
            self._unregister_child(child)
            child.output.close()
            for line in printed:
                log.write(line)
        status = child.exit_status() or 0
        if status != 0:
            last = "\n".join(f"    {line}" for line in printed[-30:])
            raise SetupStepFailed(f"{step.name} failed ({describe_exit(status)}):\n{last}")

    def add(self, service: ServiceSpec) -> None:
        """Start a service and keep it running from now on."""
        managed = _SupervisedService(
            service=service, log=RotatingLog(self._logs / f"{service.name}.log")
        )
        self._services[service.name] = managed
        self._start_service(managed)

    def wait_until_ready(self, *, seconds: float) -> tuple[str, ...]:
        """Return the names of those that are still not ready then; none if all are.

        :raises SupervisorStopRequested: if a signal comes first.
        """
        deadline = time.monotonic() + seconds
        while True:
            not_ready = tuple(
                managed.service.name for managed in self._services.values() if not managed.ready
            )
            if not not_ready or time.monotonic() > deadline:
                return not_ready
            self._run_once()
            self._raise_if_stopping()
            for managed in self._services.values():
                probe = managed.service.ready
                if managed.child and not managed.ready and not isinstance(probe, LogLineProbe):
                    managed.ready = probe is None or probe()

    def watch(self) -> None:
        """Keep everything running until a signal asks to stop."""
        while not self._signals:
            self._run_once()

    def stop(self) -> None:
        """Stop all services in stop order, each within its grace period. A second signal ends the wait."""
        signals_before = self._signals
        for order in sorted({managed.service.stop_order for managed in self._services.values()}):
            members = [
                managed
                for managed in self._services.values()
                if managed.service.stop_order == order
            ]
            self._stop_children(
                [managed.child for managed in members if managed.child],
                give_up=lambda: self._signals > max(signals_before, 1),
            )
            for managed in members:
                self._close_process(managed)
        self._services.clear()

    def _stop_children(
        self, children: list[GuardedProcess], *, give_up: Callable[[], bool] = lambda: False
    ) -> None:
        began = time.monotonic()
        for child in children:
            child.terminate()
        while running := [child for child in children if child.exit_status() is None]:
            self._wait_for_events()
            self._read_output()
            waited = time.monotonic() - began
            for child in running:
                if waited > child.grace_seconds or give_up():
                    child.kill()

    def _raise_if_stopping(self) -> None:
        if self._signals:
            raise SupervisorStopRequested

    def _run_once(self) -> None:
        self._wait_for_events()
        self._read_output()
        now = time.monotonic()
        for managed in self._services.values():
            if managed.child is None and now >= managed.due_at:
                self._start_again(managed)
            elif managed.child is not None and managed.child.exit_status() is not None:
                self._handle_exit(managed, now=now)

    def _wait_for_events(self) -> None:
        for key, _ in self._selector.select(_POLL_SECONDS):
            if key.fileobj is self._wakeup_reader:
                with contextlib.suppress(BlockingIOError):
                    self._wakeup_reader.recv(4096)

    def _read_output(self) -> None:
        for managed in self._services.values():
            if managed.child is not None:
                self._print_lines(managed, managed.child.output.lines())
                if managed.child.output.at_end:
                    self._unregister_child(managed.child)

    def _unregister_child(self, child: GuardedProcess) -> None:
        # A closed output stays readable and would end each wait at once.
        with contextlib.suppress(KeyError):
            self._selector.unregister(child.output)

    def _print_lines(self, managed: _SupervisedService, lines: list[str]) -> None:
        service = managed.service
        for line in lines:
            if isinstance(service.ready, LogLineProbe) and not managed.ready:
                managed.ready = service.ready.pattern.search(line) is not None
            if _is_ignored(service.ignored_output, line):
                continue
            managed.log.write(line)
            self._terminal.line(service.name, line)

    def _start_service(self, managed: _SupervisedService) -> None:
        service = managed.service
        if service.before_start is not None:
            service.before_start()
        managed.child = GuardedProcess.of_service(
            service, folder=self._folder, environment=self.environment
        )
        managed.started_at = time.monotonic()
        managed.since = datetime.now(UTC)
        self._selector.register(managed.child.output, selectors.EVENT_READ)
        self.on_change()

    def _start_again(self, managed: _SupervisedService) -> None:
        managed.restarts += 1
        try:
            self._start_service(managed)
        except (OSError, RuntimeError) as error:
            managed.due_at = time.monotonic() + self._policy.slow_seconds
            self._terminal.say(f"{managed.service.name} could not be started again: {error}")

    def _close_process(self, managed: _SupervisedService) -> int:
        """Read the remaining output of a process that has exited; return its exit status, 0 if there was none."""
        child, managed.child = managed.child, None
        if child is None:
            return 0
        self._unregister_child(child)
        self._print_lines(managed, child.output.remaining_lines())
        child.output.close()
        return child.exit_status() or 0

    def _handle_exit(self, managed: _SupervisedService, *, now: float) -> None:
        status = self._close_process(managed)
        policy = self._policy
        managed.ready = False
        managed.failures = policy.consecutive_failures(
            managed.failures, ran_seconds=now - managed.started_at
        )
        delay = policy.delay_seconds(managed.failures)
        managed.due_at = now + delay
        name = managed.service.name
        message = f"{name} ended ({describe_exit(status)}); starting it again in {delay:g} s"
        if policy.is_crash_looping(managed.failures):
            message += (
                f" (it died {managed.failures} times in a row: see {name}.log in {self._logs})"
            )
        self._terminal.say(message)
        self.on_change()


def _do_nothing() -> None:
    return None


def _is_ignored(ignored_output: re.Pattern[str] | None, line: str) -> bool:
    return ignored_output is not None and ignored_output.search(line) is not None


@contextlib.contextmanager
def print_step_duration(terminal: TerminalOutput, text: str) -> Iterator[None]:
    """Print the name of a step, and how long it took."""
    began = time.monotonic()
    terminal.say(f"· {text} …")
    yield
    terminal.say(f"✓ {text}: {time.monotonic() - began:.1f} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    first_seconds: float = 0.5
    slow_seconds: float = 60.0
    #: Consecutive failures, each within ``steady_seconds``, before restarts become slow.
    quick_failures: int = 6
    #: Having run for so long, a process counts as healthy again.
    steady_seconds: float = 60.0

    def consecutive_failures(self, before: int, *, ran_seconds: float) -> int:
        """Return the count after one more failure."""
        return 1 if ran_seconds >= self.steady_seconds else before + 1

    def is_crash_looping(self, failures: int) -> bool:
        return failures >= self.quick_failures

    def delay_seconds(self, failures: int) -> float:
        if self.is_crash_looping(failures):
            return self.slow_seconds
        return min(self.slow_seconds, self.first_seconds * 2.0 ** (failures - 1))
