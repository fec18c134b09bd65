"""Calling a vendor's tool, which hangs when a card falls off the bus.

A process that waits for a lost device cannot be killed: it is left behind rather than waited for, and until it is
gone no second one is started, or a dead card would fill the node with them.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

_LIMIT_SECONDS = 4.0
_REAP_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    #: What it printed, also where it failed.
    text: str = ""
    #: In words; empty where it ended well.
    error: str = ""


class VendorTool:
    """One program with fixed arguments."""

    def __init__(self, command: Sequence[str], *, limit_seconds: float = _LIMIT_SECONDS) -> None:
        self._command = tuple(command)
        self._limit_seconds = limit_seconds
        self._stuck: subprocess.Popen[str] | None = None

    def run(self) -> ToolOutput:
        """The output of the tool, within the time limit."""
        name = self._command[0]
        if self._stuck is not None and self._stuck.poll() is None:
            return ToolOutput(
                error=f"an earlier {name} (process {self._stuck.pid}) does not end; "
                "a card may have fallen off the bus"
            )
        self._stuck = None
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                # What a signal to the agent's group does is the agent's business.
                start_new_session=True,
            )
        except OSError as error:
            return ToolOutput(error=f"{name} cannot be run: {error.strerror or error}")
        try:
            text, _ = process.communicate(timeout=self._limit_seconds)
        except subprocess.TimeoutExpired:
            return ToolOutput(error=f"{name} did not answer in {self._limit_seconds:g} s")
        finally:
            self._end(process)
        if process.returncode != 0:
            last = text.strip().splitlines()[-1:] or ["without a word"]
            return ToolOutput(
                text=text, error=f"{name} ended with {process.returncode}: {last[0]:.200}"
            )
        return ToolOutput(text=text)

    def _end(self, process: subprocess.Popen[str]) -> None:
        if process.poll() is not None:
            return
        process.kill()
        if process.stdout is not None:
            process.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_SECONDS)
            return
        self._stuck = process
