"""An agent that was away comes back: its node is heard of at once, and the history is filled behind it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache
from django.db import connections
from pytest_django.live_server_helper import LiveServer

from apps.fleet.models import Card, Cluster, Node
from apps.monitoring.api import telemetry
from apps.monitoring.models import CardFigures, CardHistory, NodeToken
from apps.monitoring.services.node_tokens import token_issue
from apps.monitoring.services.pushes import Push, Pushed, push_record
from ninefold_runtime.agent.batches import Batch
from ninefold_runtime.agent.pushes import Server
from ninefold_runtime.agent.sending import Pace, Sender
from ninefold_runtime.agent.sequences import Sequence
from tests.integration.launcher.waiting import wait_for
from tests.integration.runtime.collectors import Collector

AT = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
KEPT = 12


@pytest.fixture
def node(transactional_db: None) -> Node:
    cache.clear()
    cluster = Cluster.objects.create(name="east", kind="simulated")
    node = Node.objects.create(cluster=cluster, name="n7")
    Card.objects.create(node=node, index=0, chip="nvidia-h200")
    return node


def text(utilization: int) -> str:
    return f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",Hostname="n7"}} {utilization}\n'


def at_once(*works: Callable[[], Pushed]) -> list[Pushed]:
    """What each of them says, in threads with connections of their own."""

    def alone(work: Callable[[], Pushed]) -> Pushed:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(alone, works))


def history() -> list[float | None]:
    """Utilizations of the card in the order in which they were measured."""
    # What other cards were outlives them and their tests.
    rows = CardHistory.objects.filter(card__in=Card.objects.all()).order_by("at")
    return list(rows.values_list("utilization", flat=True))


@pytest.fixture
def kept(live_server: LiveServer, node: Node) -> Callable[[], Sender]:
    """A sender of that node that could send nothing for a minute, and now has the product before it."""

    def make() -> Sender:
        token = token_issue(node=node, actor=None)
        nowhere, said = Collector(), list[str]()
        nowhere.reserve()
        sender = Sender(
            Server.of(nowhere.url),
            vendor="nvidia",
            token=lambda: token,
            sequence=Sequence(None),
            keep=720,
            pace=Pace(first_pause=0.02, behind=0.05),
            say=said.append,
        )
        sender.start()
        began = datetime.now(UTC) - timedelta(minutes=1)
        for number in range(KEPT):
            at = began + timedelta(seconds=5 * number)
            sender.add(Batch(at=at, text=text(number)))
        wait_for(lambda: len(said) == 1, what="it knows of the outage")
        sender._server = Server.of(live_server.url)
        return sender

    return make


def test_its_newest_figures_are_there_first_and_the_history_follows(
    kept: Callable[[], Sender],
) -> None:
    sender = kept()
    wait_for(CardFigures.objects.exists, what="the node is heard of")
    assert CardFigures.objects.get().utilization == KEPT - 1
    wait_for(lambda: sender.waiting == 0, what="all is sent")
    assert history() == list(range(KEPT))
    assert CardFigures.objects.get().utilization == KEPT - 1
    assert NodeToken.objects.get().gaps[1:] == []


def test_the_throttle_loses_nothing(
    kept: Callable[[], Sender], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "MOST_A_MINUTE", 5)
    monkeypatch.setattr(telemetry, "_WINDOW", 1)
    sender = kept()
    wait_for(lambda: sender.waiting == 0, what="all is sent")
    assert history() == list(range(KEPT))


def push(number: int) -> Push:
    """Of that second."""
    at = AT + timedelta(seconds=number)
    return Push(vendor="nvidia", sequence=number, measured_at=at, text=text(number))


def test_a_batch_that_comes_twice_at_the_same_moment_counts_once(node: Node) -> None:
    token_issue(node=node, actor=None)
    token = NodeToken.objects.select_related("node__cluster").get()
    push_record(token=token, push=push(1), at=AT)
    push_record(token=token, push=push(9), at=AT + timedelta(seconds=9))
    for number in (5, 6, 10):
        pushed = at_once(
            *[
                lambda number=number: push_record(
                    token=token, push=push(number), at=AT + timedelta(seconds=20)
                )
            ]
            * 4
        )
        assert sorted(one.taken for one in pushed) == [False, False, False, True]
    assert history() == [1, 5, 6, 9, 10]
    assert NodeToken.objects.get().gaps == [[2, 4], [7, 8]]


def test_batches_that_come_together_in_any_order_all_count(node: Node) -> None:
    token_issue(node=node, actor=None)
    token = NodeToken.objects.select_related("node__cluster").get()
    push_record(token=token, push=push(1), at=AT)
    numbers = (4, 8, 2, 7, 5, 3, 6)
    later = AT + timedelta(seconds=20)
    works = [
        lambda number=number: push_record(token=token, push=push(number), at=later)
        for number in numbers
    ]
    assert all(one.taken for one in at_once(*works))
    assert history() == list(range(1, 9))
    assert CardFigures.objects.get().utilization == 8
    assert NodeToken.objects.get().gaps == []
