"""Small programs that behave as kept processes do, well or badly."""

from __future__ import annotations

import sys
from pathlib import Path

_WRITE_PID = """
import os, pathlib, signal, subprocess, sys, time
def note(name):
    pathlib.Path({folder!r}, name).write_text(f"{{os.getpid()}}\\n")
"""

#: Forks a worker as a server does, and a job that leaves the session as local jobs do.
_FAMILY = (
    _WRITE_PID
    + """
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note({name!r} + "-worker")
    time.sleep(600)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        note({name!r} + "-job")
        time.sleep(600)
    os._exit(0)
note({name!r})
print({name!r}, "is up", flush=True)
time.sleep(600)
"""
)

_STUBBORN = (
    _WRITE_PID
    + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
note({name!r})
print({name!r}, "is up", flush=True)
while True:
    time.sleep(600)
"""
)


def family(name: str, *, folder: Path) -> tuple[str, ...]:
    """Notes its pid as ``name``, its worker's as ``name-worker``, its job's as ``name-job``."""
    return (sys.executable, "-c", _FAMILY.format(name=name, folder=str(folder)))


def stubborn(name: str, *, folder: Path) -> tuple[str, ...]:
    """Notes its pid as ``name`` and does not end when asked."""
    return (sys.executable, "-c", _STUBBORN.format(name=name, folder=str(folder)))


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)
