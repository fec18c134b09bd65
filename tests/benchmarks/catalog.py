"""The catalog's page and REST list beside a plain DRF list of the same rows, in the same process.

``make bench ARGS=catalog`` runs the test that measures, which brings a database of its own. The plain list is
a ``ModelSerializer`` with nested cells and a prefetch, as one writes it first. Limits: three queries, a third of
the plain list's time.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "var" / "bench" / "catalog.json"
MOST_QUERIES = 3
LEAST_TIMES_FASTER = 3.0
ITERATIONS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One way to the catalog."""

    name: str
    #: Median, of one request.
    milliseconds: float
    queries: int
    bytes: int


def measure(ways: dict[str, Callable[[], Any]]) -> list[Measured]:
    """Every way in turn, round after round, so that a busy moment of the machine meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, tuple[int, int]] = {}
    for name, call in ways.items():
        call()
        with CaptureQueriesContext(connection) as queries:
            answer = call()
        assert answer.status_code == 200, answer
        found[name] = (len(queries), len(answer.content))
    for _round in range(ITERATIONS):
        for name, call in ways.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    return [
        Measured(
            name=name,
            milliseconds=statistics.median(times[name]) * 1000,
            queries=found[name][0],
            bytes=found[name][1],
        )
        for name in ways
    ]


def keep(rows: list[Measured], *, plain: Measured) -> None:
    """Figures and their table, as JSON below ``var/bench``."""
    lines = [
        f"| {row.name} | {row.milliseconds:.1f} | {row.queries} | {row.bytes:,} "
        f"| {plain.milliseconds / row.milliseconds:.1f} |"
        for row in rows
    ]
    head = ["| way | ms | queries | bytes | times faster |", "|---|---|---|---|---|"]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    measurements = {"rows": [asdict(row) for row in rows], "table": "\n".join([*head, *lines])}
    RESULTS.write_text(json.dumps(measurements, indent=2))


def main() -> int:
    """0 if both limits hold."""
    test = ROOT / "tests" / "functional" / "api" / "test_catalog_speed.py"
    command = [sys.executable, "-m", "pytest", str(test), "-q", "-p", "no:cacheprovider"]
    ended = subprocess.run(command, cwd=ROOT, check=False).returncode
    if not ended:
        print(json.loads(RESULTS.read_text())["table"])
    return ended


if __name__ == "__main__":
    sys.exit(main())
