"""What the gateway adds: direct and through it, interleaved in one run.

``python -m tests.benchmarks.gateway.proxy [--seconds 3] [--rounds 3]`` prints a table and writes
``var/bench/gateway_proxy.json``. Load comes from ``wrk`` where it is installed, else from asyncio,
which is the slower side then and says so. Key check, limits, usage and eight backends are switched
on.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from tests.integration.gateway.control_planes import FakeControl, key_of, route_of
from tests.integration.gateway.processes import GatewayProcess
from tests.integration.gateway.servers import free_port, wait_until

_SECRET = "sk-benchmark"
_BACKENDS = 8
_WAYS = ("direct", "gateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    connections: int
    stream: bool


CASES = (
    Case(name="json", connections=1, stream=False),
    Case(name="json", connections=16, stream=False),
    Case(name="json", connections=64, stream=False),
    Case(name="64-event stream", connections=16, stream=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    failures: int


def body_of(*, stream: bool) -> str:
    content: dict[str, Any] = {
        "model": "engine",
        "messages": [{"role": "user", "content": "Say a word or two."}],
    }
    if stream:
        content["stream"] = True
    return json.dumps(content, separators=(",", ":"))


def by_wrk(url: str, case: Case, *, seconds: int, folder: Path) -> Measurements:
    script = folder / "request.lua"
    script.write_text(
        'wrk.method = "POST"\n'
        'wrk.headers["Content-Type"] = "application/json"\n'
        f'wrk.headers["Authorization"] = "Bearer {_SECRET}"\n'
        f"wrk.body = [[{body_of(stream=case.stream)}]]\n"
        "done = function(summary, latency)\n"
        "  local errors = summary.errors\n"
        '  io.write(string.format("RESULT %d %d %d %d %d\\n", summary.requests, summary.duration,'
        " latency:percentile(50), latency:percentile(99), errors.connect + errors.read +"
        " errors.write + errors.status + errors.timeout))\n"
        "end\n"
    )
    output = subprocess.run(
        ["wrk", "-t1", f"-c{case.connections}", f"-d{seconds}s", "-s", str(script), url],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+)", output)
    if found is None:
        raise RuntimeError(f"wrk printed no result: {output}")
    requests, microseconds, p50, p99, failures = map(int, found.groups())
    return Measurements(
        requests_per_second=requests / microseconds * 1e6,
        p50_ms=p50 / 1000,
        p99_ms=p99 / 1000,
        failures=failures,
    )


async def by_asyncio(url: str, case: Case, *, seconds: int) -> Measurements:
    body = body_of(stream=case.stream).encode()
    headers = {"Authorization": f"Bearer {_SECRET}", "Content-Type": "application/json"}
    durations: list[float] = []
    failures = 0
    end = time.monotonic() + seconds

    async def call(session: aiohttp.ClientSession) -> None:
        nonlocal failures
        while (begin := time.monotonic()) < end:
            async with session.post(url, data=body, headers=headers) as response:
                await response.read()
                failures += response.status != 200
            durations.append(time.monotonic() - begin)

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(call(session) for _ in range(case.connections)))
    cuts = statistics.quantiles(durations, n=100)
    return Measurements(
        requests_per_second=len(durations) / seconds,
        p50_ms=cuts[49] * 1000,
        p99_ms=cuts[98] * 1000,
        failures=failures,
    )


async def first_event_ms(url: str, *, times: int) -> float:
    """The median of the time to a stream's first bytes, one stream at a time."""
    headers = {"Authorization": f"Bearer {_SECRET}", "Content-Type": "application/json"}
    body = body_of(stream=True).encode()
    seen: list[float] = []
    async with aiohttp.ClientSession() as session:
        for _ in range(times):
            begin = time.perf_counter()
            async with session.post(url, data=body, headers=headers) as response:
                await response.content.readany()
                seen.append((time.perf_counter() - begin) * 1000)
                await response.read()
    return statistics.median(seen)


@contextlib.contextmanager
def engine_process() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.benchmarks.gateway.engine", str(port)])

    def listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until(listening, what="the engine")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def product(engine_url: str, folder: Path) -> Iterator[GatewayProcess]:
    backends = [
        {
            "uid": f"backend-{number}",
            "weight": 10,
            "model": "engine",
            "endpoints": [{"uid": f"e{number}", "url": engine_url, "credential": "credential"}],
        }
        for number in range(_BACKENDS)
    ]
    limits = {"requests_per_minute": 10**9, "tokens_per_minute": 10**9, "concurrency": 10**6}
    control = FakeControl().start()
    gateway = GatewayProcess(home=folder, control_url=control.url)
    try:
        control.publish(routes=[route_of("engine", *backends)], keys=[key_of(_SECRET, **limits)])
        gateway.start()
        yield gateway
    finally:
        gateway.stop()
        control.stop()


def measure(
    urls: dict[str, str], case: Case, *, seconds: int, iterations: int, folder: Path
) -> dict[str, Measurements]:
    """The best round of each way; the ways take turns, so that noise falls on both."""
    found: dict[str, list[Measurements]] = {way: [] for way in urls}
    for _ in range(iterations):
        for way, url in urls.items():
            if shutil.which("wrk"):
                measurements = by_wrk(url, case, seconds=seconds, folder=folder)
            else:
                measurements = asyncio.run(by_asyncio(url, case, seconds=seconds))
            found[way].append(measurements)
    return {
        way: max(all_, key=lambda each: each.requests_per_second) for way, all_ in found.items()
    }


def main(arguments: Sequence[str] = ()) -> int:
    """Measure and print; always 0, since nothing here is a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    load = "wrk" if shutil.which("wrk") else "asyncio (slower than what it measures)"
    result: dict[str, Any] = {"load": load, "cpus": os.cpu_count(), "cases": []}
    print(f"load: {load}; best of {options.rounds} rounds of {options.seconds} s")
    print(
        f"{'case':<18}{'conns':>6}  {'way':<8}{'req/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'failed':>8}"
    )
    with (
        tempfile.TemporaryDirectory() as name,
        engine_process() as engine_url,
        product(engine_url, Path(name)) as gateway,
    ):
        path = "/v1/chat/completions"
        urls = {"direct": engine_url + path, "gateway": gateway.url + path}
        for case in CASES:
            measurements = measure(
                urls, case, seconds=options.seconds, iterations=options.rounds, folder=Path(name)
            )
            for way in _WAYS:
                each = measurements[way]
                print(
                    f"{case.name:<18}{case.connections:>6}  {way:<8}"
                    f"{each.requests_per_second:>9.0f}{each.p50_ms:>9.2f}{each.p99_ms:>9.2f}"
                    f"{each.failures:>8}"
                )
            result["cases"].append(asdict(case) | {way: asdict(measurements[way]) for way in _WAYS})
        first = {way: asyncio.run(first_event_ms(urls[way], times=300)) for way in _WAYS}
        memory = psutil.Process(gateway.pid).memory_info().rss / 2**20
    print(
        f"first event, one stream: direct {first['direct']:.2f} ms, gateway {first['gateway']:.2f} ms"
    )
    print(f"gateway's resident memory after the load: {memory:.0f} MiB")
    result |= {"first_event_ms": first, "memory_mib": memory}
    file = Path("var/bench/gateway_proxy.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result, indent=1))
    print(f"written to {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
