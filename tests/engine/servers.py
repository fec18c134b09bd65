"""The product's model server as a process."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import openai

from controlplane.ports.engines import EngineTask
from tests.engine.conftest import LIMIT_SECONDS, Run, complete_spec, runtime_environment
from tests.engine.preloaded_runtime import start_runtime

KEY = "engine-key"
MODEL = "parser"


@dataclass
class Server:
    run: Run
    port: int

    def send(
        self, path: str, body: dict[str, Any] | None = None, *, key: str | None = KEY
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
        try:
            content = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "POST", path, content, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def post(self, path: str, **fields: Any) -> tuple[int, Any]:
        status, body = self.send(path, {"model": MODEL} | fields)
        return status, json.loads(body)

    def gauge(self, name: str) -> int:
        _, body = self.send("/metrics")
        lines = body.decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def client(self) -> openai.OpenAI:
        """The official client, which waits as long as tests do and does not try again."""
        return openai.OpenAI(
            base_url=f"http://127.0.0.1:{self.port}/v1",
            api_key=KEY,
            max_retries=0,
            timeout=LIMIT_SECONDS,
        )


@contextmanager
def running_server(
    python: Path,
    model: Path,
    *,
    folder: Path,
    adapters: Mapping[str, Path] = MappingProxyType({}),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Server]:
    """A server of the model and LoRA adapters that is ready; one request may wait beside the one that runs."""
    work, inputs = folder / "work", folder / "inputs"
    work.mkdir(parents=True)
    inputs.mkdir()
    (inputs / "model").symlink_to(model)
    for name, adapter in adapters.items():
        (inputs / name).symlink_to(adapter)
    spec = folder / "spec.json"
    values = complete_spec(EngineTask.SERVE, model_name=MODEL, queue_size=1)
    values["adapters"] = {name: name for name in adapters}
    spec.write_text(json.dumps(values), encoding="utf-8")
    port = _free_port()
    process = start_runtime(
        python,
        task="serve",
        arguments=["--spec", str(spec), "--port", str(port)],
        environment=runtime_environment(work, inputs)
        | {"NINEFOLD_ENGINE_KEY": KEY}
        | dict(environment),
    )
    server = Server(run=Run(process=process, work=work), port=port)
    try:
        server.run.wait_for("listening on")
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            try:
                if server.send("/health", key=None)[0] == 200:
                    break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, server.run.text()
                time.sleep(0.05)
        yield server
    finally:
        server.run.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
