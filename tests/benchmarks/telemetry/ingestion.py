"""``python -m tests.benchmarks ingestion``: ten figures of 10,000 cards each, every ten seconds for ten minutes.

The product reads them from exporters as its loop does, once in its usual rhythm and once as fast as it can; a
Prometheus reads the same exporters in the same run. Seconds of processors are compared, of every process that
belongs to either: the database's are the product's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil

from tests.benchmarks.queues.databases import ROOT, product_database, ran
from tests.benchmarks.scheduling.speed import Limit
from tests.benchmarks.telemetry.exporters import shares
from tests.prometheus_servers import PROGRAM, prometheus

RESULTS = ROOT / "var" / "bench" / "ingestion.json"
CARDS, TARGETS, RUNS, FLAT_OUT, EVERY = 10_000, 50, 60, 6, 10.0
_SCRAPES = 10


def ingestion(one_in: int) -> int:
    """0 if every limit is met; with one in N of the cards, the rhythm is N times as quick."""
    cards, every = CARDS // one_in, EVERY / one_in
    with exporters(cards) as port:
        with product_database() as environment:
            arguments = map(str, (port, cards, TARGETS, RUNS, FLAT_OUT, every))
            ours = json.loads(
                ran("tests.benchmarks.telemetry.ingesting", *arguments, environment=environment)
            )
        theirs = prometheus_reads(port, cards) if PROGRAM else None
    limits = list(_limits(ours, theirs))
    print(_format_comparison(ours, theirs))
    print("\n| what | measured | goal |\n|---|---|---|")
    for limit in limits:
        print(limit.line())
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({"ours": ours, "prometheus": theirs}, indent=2))
    return int(not all(limit.met for limit in limits))


@contextmanager
def exporters(cards: int, targets: int = TARGETS) -> Iterator[int]:
    """The port of a process that prints what so many exporters of so many cards do."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.telemetry.exporters", str(cards), str(targets)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def prometheus_reads(port: int, cards: int) -> Mapping[str, float]:
    """Samples that it took, and the processor's seconds that they cost it."""
    count = len(shares(cards, TARGETS))
    with tempfile.TemporaryDirectory() as folder:
        jobs = [f"127.0.0.1:{port}/{target}/metrics" for target in range(count)]
        with prometheus(Path(folder), targets=jobs, every="2s") as server:
            server.await_value("count(up == 1)", count)
            began, before = _appended(server.url), _seconds(server.process.pid)
            time.sleep(2.0 * _SCRAPES)
            ended, after = _appended(server.url), _seconds(server.process.pid)
    return {"samples": ended - began, "seconds": after - before}


def _appended(url: str) -> float:
    with urlopen(f"{url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    name = "prometheus_tsdb_head_samples_appended_total"
    return sum(
        float(line.split()[-1]) for line in lines if line.startswith((name + "{", name + " "))
    )


def _seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _rates(ours: Mapping[str, Any]) -> tuple[float, float, float]:
    """The share of a core in the usual rhythm; samples a second flat out, and of a core's second."""
    steady, flat_out = ours["steady"], ours["ceiling"]
    share = (steady["ours"] + steady["database"]) / steady["wall"]
    samples = ours["samples_a_turn"] * ours["flat_out"]
    core_seconds = flat_out["ours"] + flat_out["database"]
    return share, samples / flat_out["wall"], samples / core_seconds


def _limits(ours: Mapping[str, Any], theirs: Mapping[str, float] | None) -> Iterator[Limit]:
    share, ceiling, a_core = _rates(ours)
    yield Limit(name="10,000 samples a second", value=share, unit=" cores", most=0.25)
    yield Limit(name="ceiling", value=ceiling, unit=" samples/s", least=200_000)
    if theirs is not None:
        beside = a_core / (theirs["samples"] / theirs["seconds"])
        yield Limit(
            name="samples of a core's second, beside Prometheus", value=beside, unit="", least=0.25
        )
    yield Limit(name="posted until visible, p99", value=ours["push_p99"], unit=" s", most=1.0)


def _format_comparison(ours: Mapping[str, Any], theirs: Mapping[str, float] | None) -> str:
    share, ceiling, a_core = _rates(ours)
    steady, flat_out, push = ours["steady"], ours["ceiling"], ours["push"]
    rows = [
        ("figures a turn", f"{ours['samples_a_turn']:,}"),
        ("turns, one every", f"{ours['turns']}, {ours['every']:g} s"),
        ("share of a core", f"{share:.3f}"),
        ("… of the product's process", f"{steady['ours'] / steady['wall']:.3f}"),
        ("… of the database", f"{steady['database'] / steady['wall']:.3f}"),
        ("read until visible, p50 / p99", f"{ours['lag_p50']:.2f} / {ours['lag_p99']:.2f} s"),
        ("ceiling, samples a second", f"{ceiling:,.0f}"),
        ("samples of a core's second", f"{a_core:,.0f}"),
        ("… of the product's process alone", f"{_of(ours, flat_out['ours']):,.0f}"),
        ("… of the database alone", f"{_of(ours, flat_out['database']):,.0f}"),
        ("posted until visible, p50 / p99", f"{ours['push_p50']:.3f} / {ours['push_p99']:.3f} s"),
        (
            "processor of a post",
            f"{(push['ours'] + push['database']) / ours['pushes'] * 1e3:.1f} ms",
        ),
        ("rows in the history", f"{ours['history_rows']:,}"),
        ("bytes of each", f"{ours['bytes_a_history_row']:.0f}"),
        ("newest figures", f"{ours['newest_bytes'] / 1e6:.1f} MB"),
        ("summing up an hour, wall", f"{ours['sum_up']['wall']:.2f} s"),
    ]
    if theirs is not None:
        rate = theirs["samples"] / theirs["seconds"]
        rows.append(("Prometheus, samples of a core's second", f"{rate:,.0f}"))
    lines = [f"| {name} | {value} |" for name, value in rows]
    return "\n".join(["| what | measured |", "|---|---|", *lines])


def _of(ours: Mapping[str, Any], seconds: float) -> float:
    return float(ours["samples_a_turn"] * ours["flat_out"] / max(seconds, 1e-9))
