"""Faults on the real path: exporters on HTTP, a running product, cards of a simulated cluster.

::

    exporter changes ──scrape interval──▶ scraped ──faults, outbox, Celery, health──▶ card unschedulable
          └──────────── change until unschedulable ─────────────────────────────────────┘

A fault is a new error code in what one exporter serves. Nothing else is handed to the product: its own workers
scrape every exporter at the source's interval. The REST API says when the card is unschedulable.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

from tests.drill.expositions import exposition
from tests.drill.faults import WORST, Node
from tests.drill.scoring import Measurement, Outcome, centile
from tests.e2e.product import ROOT, Product, running_product
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until

#: Seconds between two scrapes, the shortest that a source may have.
INTERVAL = 5
CARDS_A_NODE = 8
_VENDOR, _CHIP = "nvidia", "nvidia-h100"
#: Seconds between two requests to the REST API; the error of every figure.
_POLL = 0.05
_LONGEST = 60.0
_UNSCHEDULABLE = ("no_new_work", "isolated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Seconds of one fault until its card was unschedulable."""

    from_change: float
    from_scrape: float


class Exporters:
    """One exporter for each node, ``/<node>/metrics``, all on one port of loopback."""

    def __init__(self, nodes: Sequence[Node], *, draws: Random) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._codes: dict[str, dict[int, str]] = {name: {} for name in self._nodes}
        self._served_at: dict[str, float] = {}
        self._lock = threading.Lock()
        self._draws = draws
        self.port = 0

    def break_card(self, node: str, index: int) -> float:
        """Serve the vendor's worst code for the card from now on; when that began, by the monotonic clock."""
        with self._lock:
            self._codes[node][index] = WORST[_VENDOR]
            self._served_at.pop(node, None)
            return time.monotonic()

    def scraped_at(self, node: str) -> float | None:
        """When the node's exporter was first scraped after its last change."""
        with self._lock:
            return self._served_at.get(node)

    def serve(self, node: str) -> bytes:
        with self._lock:
            self._served_at.setdefault(node, time.monotonic())
            codes = dict(self._codes[node])
        return exposition(self._nodes[node], codes, draws=self._draws).encode()

    @contextmanager
    def running(self) -> Iterator[None]:
        exporters = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = exporters.serve(self.path.split("/")[1])
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Be quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            #: All exporters share this port, and are scraped many at a time.
            request_queue_size = 256

        server = Server(("127.0.0.1", 0), Handler)
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def scrape(*, nodes: int, faults: int, seed: int) -> Outcome:
    """Delays of so many faults, one after the other, each on a node of its own."""
    draws = Random(seed)
    with running_product(NINEFOLD_TELEMETRY_ALLOW="127.0.0.0/8") as product:
        client = product.client()
        cluster = _cluster(client, product, nodes=nodes)
        listed = _listed(client, cluster, nodes=nodes)
        fleet = [Node(name=name, vendor=_VENDOR, cards=CARDS_A_NODE) for name in listed]
        exporters = Exporters(fleet, draws=draws)
        with exporters.running():
            _source(client, cluster, exporters, list(listed))
            wait_until(
                lambda: all(exporters.scraped_at(name) for name in listed),
                bool,
                within=120,
                what="a scrape of every exporter",
            )
            delays = [
                _measure(client, exporters, name, uid, draws=draws)
                for name, uid in draws.sample(sorted(listed.items()), min(faults, nodes))
            ]
    return outcome(delays, nodes=nodes)


def outcome(delays: Sequence[Delay], *, nodes: int) -> Outcome:
    """Both delays beside their goals; the one with the scrape has no goal but the interval."""
    scraped = [delay.from_scrape for delay in delays]
    changed = [delay.from_change for delay in delays]
    return Outcome(
        name="scrape",
        metrics=(
            Measurement(name="scrape until unschedulable, p50", value=centile(scraped, 0.5), unit="s", most=1),
            Measurement(name="scrape until unschedulable, p99", value=centile(scraped, 0.99), unit="s", most=3),
            Measurement(name="exporter's change until unschedulable, p50", value=centile(changed, 0.5), unit="s"),
            Measurement(name="exporter's change until unschedulable, p99", value=centile(changed, 0.99), unit="s"),
        ),
        summary=f"{len(delays)} faults, {nodes} exporters scraped every {INTERVAL} s",
    )  # fmt: skip


def _cluster(client: RestClient, product: Product, *, nodes: int) -> str:
    """The uid of a new simulated cluster, for which no REST endpoint exists."""
    described = product.home / "drilled.toml"
    described.write_text(
        f'[[groups]]\nname = "{_VENDOR}"\nchip = "{_CHIP}"\nnodes = {nodes}\nlevels = {{}}\n'
    )
    subprocess.run(
        [sys.executable, "manage.py", "simulate", "create", "drilled", str(described)],
        cwd=ROOT,
        env=dict(product.environment),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    # The policy's limit of isolated nodes is not what is measured.
    client.patch("health-policy", {"settings": {"nodes_per_window": nodes}})
    (uid,) = (row["uid"] for row in client.get("clusters")["results"] if row["name"] == "drilled")
    return str(uid)


def _listed(client: RestClient, cluster: str, *, nodes: int) -> Mapping[str, str]:
    """Uids of the cluster's nodes by name, once all are listed."""
    found: list[dict[str, Any]] = wait_until(
        lambda: client.get("nodes", cluster=cluster, page_size=200)["results"],
        lambda rows: len(rows) == nodes,
        within=120,
        what=f"{nodes} nodes",
    )
    return {row["name"]: row["uid"] for row in found}


def _source(client: RestClient, cluster: str, exporters: Exporters, names: Sequence[str]) -> None:
    base = f"http://127.0.0.1:{exporters.port}"
    targets = [{"url": f"{base}/{name}/metrics", "node": name} for name in names]
    client.post(
        "telemetry-sources",
        {
            "name": "drill",
            "cluster": cluster,
            "kind": "exporter",
            "every": INTERVAL,
            "options": {"vendor": _VENDOR, "targets": targets},
        },
    )


def _measure(
    client: RestClient, exporters: Exporters, name: str, uid: str, *, draws: Random
) -> Delay:
    """One fault, at any moment between two scrapes."""
    time.sleep(draws.uniform(0, INTERVAL))
    index = draws.randrange(CARDS_A_NODE)
    changed_at = exporters.break_card(name, index)
    wait_until(
        lambda: {row["index"]: row["state"] for row in client.get("cards", node=uid)["results"]},
        lambda states: states.get(index) in _UNSCHEDULABLE,
        within=_LONGEST,
        what=f"an unschedulable card {index} of {name}",
        every=_POLL,
    )
    until, scraped_at = time.monotonic(), exporters.scraped_at(name)
    if scraped_at is None:
        raise RuntimeError(f"card {index} of {name} is unschedulable, but was not scraped")
    return Delay(from_change=until - changed_at, from_scrape=until - scraped_at)
