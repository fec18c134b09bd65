"""TCP ports of replicas on the loopback interface.

A port is held twice: by a locked file among Ninefold's own replicas, and by the check that nobody
listens. A stranger can still take it before the process binds it; the supervisor then starts again
with another.
"""

from __future__ import annotations

import http.client
import os
import random
import socket
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.adapters.clusters.local.folders import try_lock

HOST = "127.0.0.1"


class NoPortFree(Exception):
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
                    raise NoPortFree(f"no port between {first} and {last} is free")
                number = candidates.pop()
                lock = try_lock(folder / str(number))
                if lock is None:
                    continue
                if bindable(number):
                    lease.numbers[name] = number
                    lease._locks.append(lock)
                    break
                os.close(lock)
        return lease

    def release(self) -> None:
        while self._locks:
            os.close(self._locks.pop())
        self.numbers.clear()


def bindable(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


class ProbeThread:
    """Asks ``GET path`` until the answer is 200, beside the supervisor's loop."""

    INTERVAL = 0.2

    def __init__(self, *, port: int, path: str) -> None:
        self._port, self._path = port, path
        self._answered = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)
        self.since = time.monotonic()
        self._thread.start()

    @property
    def answered(self) -> bool:
        return self._answered.is_set()

    def close(self) -> None:
        """No thread is left when this returns: the next process is forked after it."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            if is_answering(port=self._port, path=self._path):
                self._answered.set()
                return
            self._closed.wait(self.INTERVAL)


def is_answering(*, port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
