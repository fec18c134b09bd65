"""Processes of the runtime and of gateways that need not import their libraries; see ``fork_server``."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from io import BufferedIOBase
from pathlib import Path

SERVER = Path(__file__).with_name("fork_server.py")
#: Task → what is imported before; quantization changes settings of the libraries as it is imported.
MODULES = {
    "quantize": ("ninefold_runtime.quantize",),
    "serve": ("ninefold_runtime.serving.server", "ninefold_runtime.serving.app"),
}
OTHERWISE = ("ninefold_runtime.finetune", "ninefold_runtime.evaluate")


class ForkedProcess:
    """As ``subprocess.Popen``."""

    def __init__(self, *, status: int) -> None:
        self._status = os.fdopen(status, "rb", buffering=0)
        self._code: int | None = None
        self.pid = int(self._line())

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            found = self._status.read(1)
            if not found:
                raise RuntimeError("the server that forks ended; see what it wrote")
            line += found
        return line

    def poll(self) -> int | None:
        if self._code is None and select.select([self._status], [], [], 0)[0]:
            self._code = int(self._line())
            self._status.close()
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """:raises subprocess.TimeoutExpired: if it does not end within so many seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            select.select([self._status], [], [], left)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkedRuntime(ForkedProcess):
    """With text on ``stdout``, which has what comes on both outputs."""

    def __init__(self, *, output: int, status: int) -> None:
        self.stdout = os.fdopen(output, encoding="utf-8", errors="replace")
        super().__init__(status=status)


def start_runtime(
    python: Path, *, task: str, arguments: list[str], environment: Mapping[str, str]
) -> ForkedRuntime:
    """``python -m ninefold_runtime`` with that environment and no other variables."""
    control = _fork_server(python, MODULES.get(task, OTHERWISE), environment["PYTHONPATH"])
    output, written = os.pipe()
    status = _start(
        control,
        program="ninefold_runtime",
        arguments=[task, *arguments],
        environment=environment,
        folder=Path.cwd(),
        output=written,
    )
    os.close(written)
    return ForkedRuntime(output=output, status=status)


def start_gateway(
    *, environment: Mapping[str, str], folder: Path, output: BufferedIOBase
) -> ForkedProcess:
    """``python -m gateway`` in that folder, with that environment and no other variables."""
    control = _fork_server(
        Path(sys.executable), ("gateway.app", "uvicorn"), environment["PYTHONPATH"]
    )
    return ForkedProcess(
        status=_start(
            control,
            program="gateway",
            arguments=[],
            environment=environment,
            folder=folder,
            output=output.fileno(),
        )
    )


def _start(
    control: socket.socket,
    *,
    program: str,
    arguments: list[str],
    environment: Mapping[str, str],
    folder: Path,
    output: int,
) -> int:
    """Return the descriptor from which the process identifier and the exit code are read."""
    status, reported = os.pipe()
    message = {
        "program": program,
        "arguments": arguments,
        "environment": dict(environment),
        "folder": str(folder),
    }
    socket.send_fds(control, [json.dumps(message).encode()], [output, reported])
    os.close(reported)
    return status


@cache
def _fork_server(python: Path, modules: tuple[str, ...], path: str) -> socket.socket:
    """The socket of a server with these modules, which ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server = subprocess.Popen(
        [str(python), str(SERVER), str(theirs.fileno()), *modules],
        pass_fds=[theirs.fileno()],
        # What the libraries read when they are imported; all else comes with each run.
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": path,
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "OMP_NUM_THREADS": "1",
        },
    )
    theirs.close()

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours
