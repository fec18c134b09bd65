"""A real gateway in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection
from io import BufferedIOBase
from pathlib import Path

import openai

from tests.engine.preloaded_runtime import ForkedProcess, start_gateway
from tests.integration.gateway.control_planes import TOKEN
from tests.integration.gateway.servers import free_port

ROOT = Path(__file__).parents[3]


class GatewayProcess:
    """``python -m gateway`` on a free port, with its log in a file."""

    def __init__(self, *, home: Path, control_url: str, **variables: str) -> None:
        self.home = home
        self.port = free_port()
        self.log = home / f"gateway-{self.port}.log"
        self._variables = {
            "NINEFOLD_HOME": str(home),
            "NINEFOLD_CONTROL_URL": control_url,
            "NINEFOLD_GATEWAY_TOKEN": TOKEN,
            "NINEFOLD_GATEWAY_PORT": str(self.port),
            # No jobs run here: /metrics needs no token on loopback.
            "NINEFOLD_LOCAL_CLUSTER": "off",
            "PYTHONPATH": str(ROOT / "platform"),
            **variables,
        }
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._clients: list[openai.OpenAI] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *, until: str = "/readyz") -> None:
        """Start it and wait until that path answers 200."""
        inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        environment = {**inherited, **self._variables}
        with self.log.open("ab") as log:
            self._process = self._spawn(environment, log)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise AssertionError(f"the gateway ended: {self.log.read_text()}")
            if self.status(until) == 200:
                return
            time.sleep(0.02)
        raise AssertionError(f"{until} did not become 200: {self.log.read_text()}")

    def _spawn(
        self, environment: dict[str, str], log: BufferedIOBase
    ) -> subprocess.Popen[bytes] | ForkedProcess:
        return subprocess.Popen(
            [sys.executable, "-m", "gateway"],
            env=environment,
            cwd=self.home,
            stdout=log.fileno(),
            stderr=log.fileno(),
        )

    def status(self, path: str) -> int:
        """The status at that path; 0 if nobody answers."""
        return self.get(path)[0]

    def get(self, path: str) -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def request(
        self, method: str, path: str, *, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers by lower-case name, body."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return response.status, names, response.read()
        finally:
            connection.close()

    def client(self, secret: str) -> openai.OpenAI:
        """An official OpenAI client; closed with the gateway, as are its streams."""
        client = openai.OpenAI(base_url=f"{self.url}/v1", api_key=secret, max_retries=0, timeout=20)
        self._clients.append(client)
        return client

    def terminate(self) -> None:
        """SIGTERM, without waiting."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=10)

    def wait(self, *, seconds: float = 30) -> int:
        assert self._process is not None
        return self._process.wait(timeout=seconds)

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()
        if self._process is not None and self._process.poll() is None:
            self.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.kill()


class PreloadedGatewayProcess(GatewayProcess):
    """Forked from a process that has imported the gateway."""

    def _spawn(self, environment: dict[str, str], log: BufferedIOBase) -> ForkedProcess:
        return start_gateway(environment=environment, folder=self.home, output=log)
