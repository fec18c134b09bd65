"""Imports libraries once and forks a process for each run of a program that needs them.

Started by ``preloaded_runtime`` with the number of a socket and modules to import. A message is
``{"program", "arguments", "environment", "folder"}`` with two file descriptors: where the output goes, and where
the process identifier and later the exit code are written. Importing takes longer than most runs of a test.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
from typing import Never


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.freeze()
    #: Process identifier → where its exit code is written.
    running: dict[int, int] = {}
    while True:
        if select.select([control], [], [], 0.02 if running else None)[0]:
            message, descriptors, _flags, _address = socket.recv_fds(control, 1 << 20, 2)
            if not message:
                break
            output, status = descriptors
            pid = os.fork()
            if pid == 0:
                control.close()
                os.close(status)
                _run(output, **json.loads(message))
            os.close(output)
            os.write(status, f"{pid}\n".encode())
            running[pid] = status
        _report_ended(running)
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def _report_ended(running: dict[int, int]) -> None:
    for pid, status in list(running.items()):
        ended, code = os.waitpid(pid, os.WNOHANG)
        if ended:
            del running[pid]
            os.write(status, f"{os.waitstatus_to_exitcode(code)}\n".encode())
            os.close(status)


def _run(
    output: int, *, program: str, arguments: list[str], environment: dict[str, str], folder: str
) -> Never:
    """``python -m program`` in this process, which ends without taking the libraries apart."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = os.fdopen(number, "w", encoding="utf-8", buffering=1, closefd=False)
        setattr(sys, name, stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = [program, *arguments]
    code: object = 0
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        code = ending.code
    except BaseException:  # noqa: BLE001 - as the interpreter does at the end
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined] # as the interpreter does
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
