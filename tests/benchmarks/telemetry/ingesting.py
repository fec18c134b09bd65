"""The product's side of ``ingestion``: run with a database of its own, prints JSON.

``ingesting PORT CARDS TARGETS TURNS FLAT_OUT EVERY``: reads exporters at that port as the loop does, so many turns
one every so many seconds, then some as fast as it can; then nodes push.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import psutil
from django.conf import settings
from django.db import connection
from django.test import Client
from django.utils import timezone

from apps.fleet.models import Card, Cluster, Node
from apps.monitoring.api import metric_ingestion
from apps.monitoring.reconcilers.metric_sources import metric_sources_read, stale_cards_reconcile
from apps.telemetry.models import CardHistory, CardMetrics, NodeToken, Source
from apps.telemetry.services.metric_storage import metric_history_maintain
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.domain.outbound.egress import EgressPolicy
from tests.benchmarks.telemetry.exporters import CARDS_A_NODE, SERIES, exposition, shares

PUSHES, _AGENTS = 400, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Seconds of processors: this process, every process of the database, and of the wall."""

    ours: float
    database: float
    wall: float


def used() -> Used:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    server = psutil.Process(pid).parent()
    assert server is not None
    times = server.cpu_times()
    database = times.user + times.system + times.children_user + times.children_system
    for child in server.children(recursive=True):
        try:
            one = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        database += one.user + one.system
    return Used(ours=time.process_time(), database=database, wall=time.monotonic())


def measured(work: Callable[[], object]) -> Used:
    before = used()
    work()
    after = used()
    return Used(
        ours=after.ours - before.ours,
        database=after.database - before.database,
        wall=after.wall - before.wall,
    )


def fleet(cards: int) -> Cluster:
    cluster = Cluster.objects.create(name="bench", kind="simulated")
    nodes = Node.objects.bulk_create(
        [Node(cluster=cluster, name=f"n{number}") for number in range(-(-cards // CARDS_A_NODE))]
    )
    Card.objects.bulk_create(
        [
            Card(node=nodes[card // CARDS_A_NODE], index=card % CARDS_A_NODE, chip="nvidia-h200")
            for card in range(cards)
        ]
    )
    return cluster


def turn() -> float:
    """One turn of both loops; seconds until all of it was to be seen."""
    began = time.monotonic()
    at = timezone.now()
    assert metric_sources_read(at=at) == 1, Source.objects.get().error
    seconds = time.monotonic() - began
    stale_cards_reconcile(at=at)
    Source.objects.update(tried_at=None)
    return seconds


def steady(runs: int, *, every: float) -> list[float]:
    lags = []
    for _ in range(runs):
        began = time.monotonic()
        lags.append(turn())
        # The loop of a benchmark waits for the clock, as the beat does.
        time.sleep(max(0.0, every - (time.monotonic() - began)))
    return lags


def agents(cluster: Cluster, cards: int) -> Callable[[int], float]:
    """Sends the batch of that number; seconds until its figures could be seen."""
    metric_ingestion.MOST_A_MINUTE = PUSHES + 1
    nodes = list(cluster.nodes.order_by("pk")[:_AGENTS])
    tokens = [node_token_issue(node=node, actor=None) for node in nodes]
    texts = [
        exposition(range(each * CARDS_A_NODE, min((each + 1) * CARDS_A_NODE, cards)), variant=1)
        for each in range(len(nodes))
    ]
    client = Client(SERVER_NAME="localhost")

    def send(number: int) -> float:
        turn, which = divmod(number, len(nodes))
        began = time.monotonic()
        answer = client.post(
            "/api/v1/telemetry/push",
            texts[which],
            content_type="text/plain",
            headers={
                "Authorization": f"Bearer {tokens[which]}",
                "X-Ninefold-Sequence": str(turn + 1),
                "X-Ninefold-At": timezone.now().isoformat(),
                "X-Ninefold-Vendor": "nvidia",
            },
        )
        seconds = time.monotonic() - began
        assert answer.json()["taken"], answer.content
        return seconds

    return send


def size_of(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_total_relation_size(%s::regclass) + coalesce(sum(pg_total_relation_size(inhrelid)), 0)"
            " FROM pg_inherits WHERE inhparent = %s::regclass",
            [table, table],
        )
        return int(cursor.fetchone()[0])


def centile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main(
    port: int, cards: int, targets: int, runs: int, flat_out: int, every: float
) -> dict[str, Any]:
    settings.NINEFOLD_TELEMETRY = EgressPolicy.parse(
        allow=["127.0.0.0/8"], schemes=["http"], ports=range(1, 65536)
    )
    cluster = fleet(cards)
    urls = [
        f"http://127.0.0.1:{port}/{each}/metrics" for each in range(len(shares(cards, targets)))
    ]
    options = {"vendor": "nvidia", "targets": [{"url": url} for url in urls]}
    Source.objects.create(name="bench", cluster=cluster, kind="exporter", options=options, every=5)
    turn()
    samples = cards * len(SERIES)
    lags: list[float] = []
    in_steps = measured(lambda: lags.extend(steady(runs, every=every)))
    at_once = measured(lambda: [turn() for _ in range(flat_out)])
    assert CardMetrics.objects.count() == cards
    rows = CardHistory.objects.count()
    source = Source.objects.get()
    assert rows == cards * (runs + flat_out + 1), (
        f"{rows} rows; {source.error or source.unreachable}"
    )
    send, pushed = agents(cluster, cards), list[float]()
    # The first request of a process loads all addresses of the product: that is no agent's.
    send(0)
    by_push = measured(lambda: pushed.extend(map(send, range(1, PUSHES + 1))))
    assert NodeToken.objects.filter(sequence__gt=0).count() == _AGENTS
    stored = CardHistory.objects.count()
    summing = measured(lambda: metric_history_maintain(at=timezone.now() + timedelta(hours=1)))
    return {
        "samples_a_turn": samples,
        "turns": runs,
        "flat_out": flat_out,
        "every": every,
        "steady": asdict(in_steps),
        "lag_p50": statistics.median(lags),
        "lag_p99": centile(lags, 0.99),
        "ceiling": asdict(at_once),
        "push": asdict(by_push),
        "pushes": PUSHES,
        "figures_a_push": len(SERIES) * CARDS_A_NODE,
        "push_p50": statistics.median(pushed),
        "push_p99": centile(pushed, 0.99),
        "sum_up": asdict(summing),
        "history_rows": stored,
        "bytes_a_history_row": size_of("telemetry_history") / stored,
        "newest_bytes": size_of("telemetry_cardfigures"),
    }


if __name__ == "__main__":
    numbers = sys.argv[1:]
    port, cards, targets, runs, flat_out = map(int, numbers[:5])
    print(json.dumps(main(port, cards, targets, runs, flat_out, float(numbers[5]))))
