"""Processes of the runtime that need not import the engine's libraries; see ``fork_server``."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SERVER = Path(__file__).with_name("fork_server.py")
#: Task → what is imported before; quantization changes settings of the libraries as it is imported.
MODULES = {
    "quantize": ("ninefold_runtime.quantize",),
    "serve": ("ninefold_runtime.serving.server", "ninefold_runtime.serving.app"),
}
OTHERWISE = ("ninefold_runtime.finetune", "ninefold_runtime.evaluate")


class ForkedProcess:
    """As ``subprocess.Popen`` with text on ``stdout``, which has what comes on both outputs."""

    def __init__(self, *, output: int, status: int) -> None:
        self.stdout = os.fdopen(output, encoding="utf-8", errors="replace")
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


def start_runtime(
    python: Path, *, task: str, arguments: list[str], environment: Mapping[str, str]
) -> ForkedProcess:
    """``python -m ninefold_runtime`` with that environment and no other variables."""
    control = _fork_server(python, MODULES.get(task, OTHERWISE), environment["PYTHONPATH"])
    output, written = os.pipe()
    status, reported = os.pipe()
    message = {"arguments": [task, *arguments], "environment": dict(environment)}
    socket.send_fds(control, [json.dumps(message).encode()], [written, reported])
    os.close(written)
    os.close(reported)
    return ForkedProcess(output=output, status=status)


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
