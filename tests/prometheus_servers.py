"""A real Prometheus on loopback that reads exporters of a test; it ends with the block."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

#: None where it is not installed.
PROGRAM = shutil.which("prometheus")
_PATIENCE = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    url: str
    process: subprocess.Popen[bytes]

    def query(self, query: str) -> list[Any]:
        """The result of an instant query."""
        with urlopen(f"{self.url}/api/v1/query?{urlencode({'query': query})}", timeout=5) as answer:
            result: list[Any] = json.load(answer)["data"]["result"]
        return result

    def await_value(self, query: str, value: float) -> None:
        """:raises AssertionError: if the query does not come to have that one value in time."""
        until = time.monotonic() + _PATIENCE
        found: list[Any] = []
        while time.monotonic() < until:
            try:
                found = self.query(query)
            except OSError:
                found = []
            if [float(one["value"][1]) for one in found] == [value]:
                return
            time.sleep(0.1)
        raise AssertionError(f"{query} is {found}, not {value}")


def _target(target: str) -> dict[str, Any]:
    host, _, path = target.partition("/")
    # Told apart by their paths: several may be on one port.
    return {"targets": [host], "labels": {"__metrics_path__": f"/{path}", "path": path}}


@contextmanager
def prometheus(folder: Path, *, targets: Sequence[str], every: str = "1s") -> Iterator[Prometheus]:
    """Reads those ``host:port/path`` as the job ``cards``."""
    assert PROGRAM is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # JSON is YAML.
    configuration = {
        "scrape_configs": [
            {
                "job_name": "cards",
                "scrape_interval": every,
                "scrape_timeout": every,
                "static_configs": [_target(target) for target in targets],
            }
        ]
    }
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(configuration))
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                PROGRAM,
                f"--config.file={file}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield Prometheus(url=f"http://127.0.0.1:{port}", process=process)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
