"""A supervised process under its process guard: output, exit status and termination."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from launcher import process_guard
from launcher.linux import kill_session, started_ticks
from launcher.services import Service, SetupStep

_LONGEST_LINE = 64 * 1024
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
        self.at_end = False
        self._rest = b""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(process_guard.__file__)),
                *("--parent", str(os.getpid()), "--signal", stop_with.name),
                *("--grace", str(grace_seconds), "--", *command),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=dict(environment),
            # Ctrl-C at the terminal is for the supervisor alone: it stops the others in order.
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.ticks = started_ticks(self.pid) or 0
        assert self._process.stdout is not None  # noqa: S101 - asked for above
        self._output = self._process.stdout
        os.set_blocking(self._output.fileno(), False)

    @classmethod
    def of_service(
        cls, service: Service, *, folder: Path, environment: Mapping[str, str]
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

    def fileno(self) -> int:
        """Where its output can be waited for."""
        return self._output.fileno()

    def lines(self) -> list[str]:
        """Return the complete lines printed since the last call."""
        data = self._rest
        while True:
            try:
                piece = os.read(self._output.fileno(), _LONGEST_LINE)
            except BlockingIOError:
                break
            if not piece:
                self.at_end = True
                break
            data += piece
            if len(data) >= 4 * _LONGEST_LINE:
                break
        *whole, self._rest = data.split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            whole.append(self._rest)
            self._rest = b""
        return [line.decode(errors="replace").rstrip("\r") for line in whole]

    def remaining_lines(self) -> list[str]:
        """Return the remaining output after the exit, an unfinished line included."""
        remaining = self.lines()
        if self._rest:
            remaining.append(self._rest.decode(errors="replace"))
            self._rest = b""
        return remaining

    def exit_status(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        """Kill the guard and all processes of its session at once."""
        if self._process.poll() is None:
            kill_session(self.pid)
            self._process.wait()

    def close(self) -> None:
        """Let go of its output. Call it once it has ended."""
        self._output.close()
