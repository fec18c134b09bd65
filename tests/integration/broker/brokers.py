"""The two brokers: a real Redis on a free port, and kombu's folder of messages."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Protocol

import redis

from tests.contract.waiting import until
from tests.integration.gateway.servers import free_port


class Broker(Protocol):
    @property
    def url(self) -> str:
        """What ``NINEFOLD_BROKER_URL`` says."""

    @property
    def options(self) -> dict[str, str]:
        """kombu's ``transport_options`` for a publisher."""

    def waiting(self, queue: str) -> int:
        """How many messages of that queue no worker has taken."""

    def empty(self) -> None:
        """Lose every message, and everything that the broker knew besides."""

    def close(self) -> None: ...


class FolderBroker:
    """The transport that the product has by default."""

    url = "filesystem://"

    def __init__(self, home: Path) -> None:
        self._folder = home / "broker"

    @property
    def options(self) -> dict[str, str]:
        folder = str(self._folder)
        return {
            "data_folder_in": folder,
            "data_folder_out": folder,
            "control_folder": str(self._folder / "control"),
        }

    def waiting(self, queue: str) -> int:
        return sum(1 for _ in self._folder.glob(f"*.{queue}.msg"))

    def empty(self) -> None:
        for path in self._folder.rglob("*"):
            if path.is_file():
                # A worker may take the message first.
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Its folder goes with the home."""


class RedisBroker:
    """A ``redis-server`` that keeps nothing on disk."""

    def __init__(self, folder: Path, *, program: str) -> None:
        self._folder = folder
        self._program = program
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    @property
    def options(self) -> dict[str, str]:
        return {}

    def start(self) -> None:
        """Start it on its port, empty, and return once it answers."""
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(self._program, "--bind", "127.0.0.1", "--port", str(self._port)),
                    *("--save", "", "--appendonly", "no", "--dir", str(self._folder)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(self._answers, what="redis-server answers")

    def kill(self) -> None:
        """As by ``kill -9``: clients see their connections break, then refused."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=10)
            self._process = None

    def waiting(self, queue: str) -> int:
        with closing(self._client()) as client:
            return client.llen(queue)

    def empty(self) -> None:
        with closing(self._client()) as client:
            client.flushall()

    def close(self) -> None:
        self.kill()

    def _client(self) -> redis.Redis:
        return redis.Redis(host="127.0.0.1", port=self._port)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError((self._folder / "redis.log").read_text())
        with closing(self._client()) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False
