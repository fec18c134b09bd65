"""Keeps the product's processes running, in one thread that waits for output, signals and time.

Each process runs below a guardian (see there), so that a supervisor that is killed outright leaves
nothing behind. The work is a loop of turns: read what was printed, notice who died, start again who
is due.
"""

from __future__ import annotations

import contextlib
import re
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from launcher.children import Child, describe_exit
from launcher.logs import RotatingLog, Terminal
from launcher.processes import Says, Service, Step
from launcher.record import ProcessEntry
from launcher.restarts import RestartPolicy

_TURN_SECONDS = 0.25
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StepFailed(RuntimeError):
    """A preparing command failed; the message ends with its last lines."""


class StopRequested(Exception):
    """A signal asked the supervisor to stop while it was waiting for something else."""


@dataclass(slots=True, kw_only=True)
class _Kept:
    """A service and its present life."""

    service: Service
    log: RotatingLog
    child: Child | None = None
    ready: bool = False
    deaths: int = 0
    restarts: int = 0
    started_at: float = 0.0
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    #: On the monotonic clock; only while there is no child.
    due_at: float = 0.0


class Supervisor:
    """A context manager: signals are caught inside, and at the end nothing is left running."""

    def __init__(
        self,
        *,
        folder: Path,
        environment: Mapping[str, str],
        logs: Path,
        terminal: Terminal,
        policy: RestartPolicy | None = None,
    ) -> None:
        self._folder = folder
        self.environment = dict(environment)
        self._logs = logs
        self._terminal = terminal
        self._policy = policy or RestartPolicy()
        #: Called whenever what runs has changed.
        self.on_change: Callable[[], None] = _nothing
        self._kept: dict[str, _Kept] = {}
        self._selector = selectors.DefaultSelector()
        self._signals = 0

    def __enter__(self) -> Supervisor:
        # A signal during a wait must end the wait: Python writes its number to this socket.
        self._bell, inner = socket.socketpair()
        self._ringer = inner
        self._bell.settimeout(0)
        inner.settimeout(0)
        self._old_wakeup = signal.set_wakeup_fd(inner.fileno(), warn_on_full_buffer=False)
        self._old_handlers = {
            number: signal.signal(number, self._on_signal)
            for number in (*_STOP_SIGNALS, signal.SIGCHLD)
            # What was started to ignore a signal, as by nohup, goes on ignoring it.
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        self._selector.register(self._bell, selectors.EVENT_READ)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._old_wakeup)
            self._selector.close()
            self._bell.close()
            self._ringer.close()

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._signals += 1

    @property
    def processes(self) -> tuple[ProcessEntry, ...]:
        """What is kept now, in the order in which it was added."""
        return tuple(
            ProcessEntry(
                name=kept.service.name,
                pid=kept.child.pid if kept.child else 0,
                ticks=kept.child.ticks if kept.child else 0,
                restarts=kept.restarts,
                since=kept.since.isoformat(timespec="seconds"),
            )
            for kept in self._kept.values()
        )

    def run_step(self, step: Step) -> None:
        """Run a command to its end while everything else is kept going.

        :raises StepFailed: if it fails.
        :raises StopRequested: if a signal comes first; the command is stopped.
        """
        log = RotatingLog(self._logs / "setup.log")
        child = Child.of_step(step, folder=self._folder, environment=self.environment)
        printed: list[str] = []
        self._selector.register(child, selectors.EVENT_READ)
        try:
            while child.exit_status() is None:
                self._turn()
                self._raise_if_stopping()
                printed += child.lines()
                if child.at_end:
                    self._unwatch(child)
            printed += child.last_words()
        finally:
            self._end([child])
            self._unwatch(child)
            child.close()
            for line in printed:
                log.write(line)
        status = child.exit_status() or 0
        if status != 0:
            last = "\n".join(f"    {line}" for line in printed[-30:])
            raise StepFailed(f"{step.name} failed ({describe_exit(status)}):\n{last}")

    def add(self, service: Service) -> None:
        """Start a service and keep it running from now on."""
        kept = _Kept(service=service, log=RotatingLog(self._logs / f"{service.name}.log"))
        self._kept[service.name] = kept
        self._start(kept)

    def wait_until_ready(self, *, seconds: float) -> tuple[str, ...]:
        """Return the names of those that are still not ready then; none if all are.

        :raises StopRequested: if a signal comes first.
        """
        deadline = time.monotonic() + seconds
        while True:
            waiting = tuple(kept.service.name for kept in self._kept.values() if not kept.ready)
            if not waiting or time.monotonic() > deadline:
                return waiting
            self._turn()
            self._raise_if_stopping()
            for kept in self._kept.values():
                probe = kept.service.ready
                if kept.child and not kept.ready and not isinstance(probe, Says):
                    kept.ready = probe is None or probe()

    def watch(self) -> None:
        """Keep everything running until a signal asks to stop."""
        while not self._signals:
            self._turn()

    def stop(self) -> None:
        """Stop all, wave by wave, each within its grace. A second signal ends the waiting."""
        asked = self._signals
        for wave in sorted({kept.service.stop_wave for kept in self._kept.values()}):
            members = [kept for kept in self._kept.values() if kept.service.stop_wave == wave]
            self._end(
                [kept.child for kept in members if kept.child],
                give_up=lambda: self._signals > max(asked, 1),
            )
            for kept in members:
                self._forget(kept)
        self._kept.clear()

    def _end(self, children: list[Child], *, give_up: Callable[[], bool] = lambda: False) -> None:
        began = time.monotonic()
        for child in children:
            child.ask_to_stop()
        while running := [child for child in children if child.exit_status() is None]:
            self._wait()
            self._read()
            waited = time.monotonic() - began
            for child in running:
                if waited > child.grace_seconds or give_up():
                    child.kill()

    def _raise_if_stopping(self) -> None:
        if self._signals:
            raise StopRequested

    def _turn(self) -> None:
        self._wait()
        self._read()
        now = time.monotonic()
        for kept in self._kept.values():
            if kept.child is None and now >= kept.due_at:
                self._start_again(kept)
            elif kept.child is not None and kept.child.exit_status() is not None:
                self._bury(kept, now=now)

    def _wait(self) -> None:
        for key, _ in self._selector.select(_TURN_SECONDS):
            if key.fileobj is self._bell:
                with contextlib.suppress(BlockingIOError):
                    self._bell.recv(4096)

    def _read(self) -> None:
        for kept in self._kept.values():
            if kept.child is not None:
                self._print(kept, kept.child.lines())
                if kept.child.at_end:
                    self._unwatch(kept.child)

    def _unwatch(self, child: Child) -> None:
        # The end of its output stays readable for ever, and so would wake each wait at once.
        with contextlib.suppress(KeyError):
            self._selector.unregister(child)

    def _print(self, kept: _Kept, lines: list[str]) -> None:
        service = kept.service
        for line in lines:
            if isinstance(service.ready, Says) and not kept.ready:
                kept.ready = service.ready.pattern.search(line) is not None
            if _is_noise(service.noise, line):
                continue
            kept.log.write(line)
            self._terminal.line(service.name, line)

    def _start(self, kept: _Kept) -> None:
        service = kept.service
        if service.before_start is not None:
            service.before_start()
        kept.child = Child.of_service(service, folder=self._folder, environment=self.environment)
        kept.started_at = time.monotonic()
        kept.since = datetime.now(UTC)
        self._selector.register(kept.child, selectors.EVENT_READ)
        self.on_change()

    def _start_again(self, kept: _Kept) -> None:
        kept.restarts += 1
        try:
            self._start(kept)
        except (OSError, RuntimeError) as error:
            kept.due_at = time.monotonic() + self._policy.slow_seconds
            self._terminal.say(f"{kept.service.name} could not be started again: {error}")

    def _forget(self, kept: _Kept) -> int:
        """Read the last words of a child that has ended; its exit status, 0 if there was none."""
        child, kept.child = kept.child, None
        if child is None:
            return 0
        self._unwatch(child)
        self._print(kept, child.last_words())
        child.close()
        return child.exit_status() or 0

    def _bury(self, kept: _Kept, *, now: float) -> None:
        status = self._forget(kept)
        policy = self._policy
        kept.ready = False
        kept.deaths = policy.deaths_in_a_row(kept.deaths, ran_seconds=now - kept.started_at)
        delay = policy.delay_seconds(kept.deaths)
        kept.due_at = now + delay
        name = kept.service.name
        message = f"{name} ended ({describe_exit(status)}); starting it again in {delay:g} s"
        if policy.is_hopeless(kept.deaths):
            message += f" (it died {kept.deaths} times in a row: see {name}.log in {self._logs})"
        self._terminal.say(message)
        self.on_change()


def _nothing() -> None:
    return None


def _is_noise(noise: re.Pattern[str] | None, line: str) -> bool:
    return noise is not None and noise.search(line) is not None


@contextlib.contextmanager
def timed(terminal: Terminal, text: str) -> Iterator[None]:
    """Say what is being done, and how long it took."""
    began = time.monotonic()
    terminal.say(f"· {text} …")
    yield
    terminal.say(f"✓ {text}: {time.monotonic() - began:.1f} s")
