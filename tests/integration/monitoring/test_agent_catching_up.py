"""An agent that was away comes back: its node is heard of at once, and the history is filled behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache
from django.db import connection, connections, transaction
from pytest_django.live_server_helper import LiveServer

from apps.fleet.models import Card, Cluster, Node
from apps.monitoring.api import metric_ingestion as metric_ingestion_api
from apps.monitoring.services import metric_ingestion
from apps.monitoring.services.metric_ingestion import (
    MetricPush,
    MetricPushBusy,
    StoredPush,
    metric_push_record,
)
from apps.telemetry.models import CardHistory, CardHour, CardMetrics, NodeToken, SummedHour
from apps.telemetry.services import metric_storage as history_service
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.persistence.advisory_locks import AdvisoryLock
from ninefold_runtime.agent.card_samples import SampleBatch
from ninefold_runtime.agent.push_client import MetricPushEndpoint
from ninefold_runtime.agent.sender import BatchSender, BatchSequence, SendIntervals
from tests.integration.launcher.process_polling import wait_for
from tests.integration.runtime.collectors import Collector

pytestmark = pytest.mark.slow

AT = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
STORED = 12


@pytest.fixture
def node(transactional_db: None) -> Node:
    cache.clear()
    cluster = Cluster.objects.create(name="east", kind="simulated")
    node = Node.objects.create(cluster=cluster, name="n7")
    Card.objects.create(node=node, index=0, chip="nvidia-h200")
    return node


def text(utilization: int) -> str:
    return f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",Hostname="n7"}} {utilization}\n'


def at_once(*works: Callable[[], StoredPush]) -> list[StoredPush]:
    """What each of them says, in threads with connections of their own."""

    def alone(work: Callable[[], StoredPush]) -> StoredPush:
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
def stored(live_server: LiveServer, node: Node) -> Callable[[], BatchSender]:
    """A sender of that node that could send nothing for a minute, and now has the product before it."""

    def make() -> BatchSender:
        token = node_token_issue(node=node, actor=None)
        nowhere, said = Collector(), list[str]()
        nowhere.reserve()
        sender = BatchSender(
            MetricPushEndpoint.of(nowhere.url),
            vendor="nvidia",
            token=lambda: token,
            sequence=BatchSequence(None),
            keep=720,
            intervals=SendIntervals(first_pause=0.02, behind=0.05, again=0.05),
            log=said.append,
        )
        sender.start()
        began = datetime.now(UTC) - timedelta(minutes=1)
        for number in range(STORED):
            at = began + timedelta(seconds=5 * number)
            sender.add(SampleBatch(at=at, text=text(number)))
        wait_for(lambda: len(said) == 1, what="it knows of the outage")
        sender._server = MetricPushEndpoint.of(live_server.url)
        return sender

    return make


def test_its_newest_figures_are_there_first_and_the_history_follows(
    stored: Callable[[], BatchSender],
) -> None:
    sender = stored()
    wait_for(CardMetrics.objects.exists, what="the node is heard of")
    assert CardMetrics.objects.get().utilization == STORED - 1
    wait_for(lambda: sender.waiting == 0, what="all is sent")
    assert history() == list(range(STORED))
    assert CardMetrics.objects.get().utilization == STORED - 1
    assert NodeToken.objects.get().gaps[1:] == []


def test_the_throttle_loses_nothing(
    stored: Callable[[], BatchSender], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric_ingestion_api, "MOST_A_MINUTE", 5)
    monkeypatch.setattr(metric_ingestion_api, "_WINDOW", 1)
    sender = stored()
    wait_for(lambda: sender.waiting == 0, what="all is sent")
    assert history() == list(range(STORED))


def push(number: int) -> MetricPush:
    """Of that second."""
    at = AT + timedelta(seconds=number)
    return MetricPush(vendor="nvidia", sequence=number, measured_at=at, text=text(number))


def test_a_batch_that_comes_twice_at_the_same_moment_counts_once(node: Node) -> None:
    node_token_issue(node=node, actor=None)
    token = NodeToken.objects.select_related("node__cluster").get()
    metric_push_record(token=token, push=push(1), at=AT)
    metric_push_record(token=token, push=push(9), at=AT + timedelta(seconds=9))
    for number in (5, 6, 10):
        pushed = at_once(
            *[
                lambda number=number: metric_push_record(
                    token=token, push=push(number), at=AT + timedelta(seconds=20)
                )
            ]
            * 4
        )
        assert sorted(one.taken for one in pushed) == [False, False, False, True]
    assert history() == [1, 5, 6, 9, 10]
    assert NodeToken.objects.get().gaps == [[2, 4], [7, 8]]


def test_batches_that_come_together_in_any_order_all_count(node: Node) -> None:
    node_token_issue(node=node, actor=None)
    token = NodeToken.objects.select_related("node__cluster").get()
    metric_push_record(token=token, push=push(1), at=AT)
    numbers = (4, 8, 2, 7, 5, 3, 6)
    later = AT + timedelta(seconds=20)
    works = [
        lambda number=number: metric_push_record(token=token, push=push(number), at=later)
        for number in numbers
    ]
    assert all(one.taken for one in at_once(*works))
    assert history() == list(range(1, 9))
    assert CardMetrics.objects.get().utilization == 8
    assert NodeToken.objects.get().gaps == []


HOUR = AT.replace(minute=0, second=0) - timedelta(hours=1)
LATER = AT + timedelta(minutes=1)


def of_the_hour_before(number: int) -> MetricPush:
    at = HOUR + timedelta(minutes=55, seconds=number)
    return MetricPush(vendor="nvidia", sequence=number, measured_at=at, text=text(number))


@pytest.fixture
def token(node: Node) -> NodeToken:
    """It has sent 1 and 9."""
    node_token_issue(node=node, actor=None)
    token = NodeToken.objects.select_related("node__cluster").get()
    for number in (1, 9):
        metric_push_record(token=token, push=push(number), at=AT + timedelta(seconds=number))
    return token


def started(pool: ThreadPoolExecutor, work: Callable[[], object]) -> Future[object]:
    def alone() -> object:
        try:
            return work()
        finally:
            connections.close_all()

    return pool.submit(alone)


@contextmanager
def unfinished(work: Callable[[], object]) -> Iterator[ThreadPoolExecutor]:
    """What else a pool does while the transaction with that work in it does not end."""
    done, end = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            work()
            done.set()
            assert end.wait(30)

    with ThreadPoolExecutor(3) as pool:
        held = started(pool, hold)
        try:
            assert done.wait(30)
            yield pool
        finally:
            end.set()
        held.result(30)


def summing() -> None:
    history_service._aggregate_hour(HOUR, at=AT)


def an_hour_is_waited_for() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = %s AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())",
            [int(AdvisoryLock.SUM_HOUR)],
        )
        return cursor.fetchone() is not None


def test_a_late_batch_is_put_off_while_its_hour_is_summed_up_and_holds_up_no_new_one(
    token: NodeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric_ingestion, "_BEHIND_WAIT", "20s")
    with unfinished(summing) as pool:
        late = started(
            pool, lambda: metric_push_record(token=token, push=of_the_hour_before(5), at=LATER)
        )
        wait_for(an_hour_is_waited_for, what="the late one waits for its hour")
        new = started(pool, lambda: metric_push_record(token=token, push=push(10), at=LATER))
        assert isinstance(taken := new.result(10), StoredPush)
        assert taken.taken
        assert not late.done()
    assert isinstance(taken := late.result(10), StoredPush)
    assert taken.taken
    assert SummedHour.objects.get(hour=HOUR).summed_at is None

    monkeypatch.setattr(metric_ingestion, "_BEHIND_WAIT", "100ms")
    with unfinished(summing) as pool:
        late = started(
            pool, lambda: metric_push_record(token=token, push=of_the_hour_before(6), at=LATER)
        )
        with pytest.raises(MetricPushBusy, match="send the batch again shortly"):
            late.result(10)
    assert metric_push_record(token=token, push=of_the_hour_before(6), at=LATER).taken
    assert CardHour.objects.count() == 1


def test_late_batches_of_one_hour_do_not_wait_for_each_other(
    token: NodeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    SummedHour.objects.update_or_create(hour=HOUR, defaults={"summed_at": None})
    monkeypatch.setattr(metric_ingestion, "_BEHIND_WAIT", "5s")
    with unfinished(lambda: history_service.hours_mark_for_aggregation(hours=[HOUR])) as pool:
        late = started(
            pool, lambda: metric_push_record(token=token, push=of_the_hour_before(5), at=LATER)
        )
        assert isinstance(taken := late.result(10), StoredPush)
        assert taken.taken


def test_an_hour_is_summed_up_with_what_was_being_kept_of_it(token: NodeToken) -> None:
    SummedHour.objects.update_or_create(hour=HOUR, defaults={"summed_at": None})
    late = of_the_hour_before(5)
    with unfinished(lambda: metric_push_record(token=token, push=late, at=LATER)) as pool:
        summed = started(pool, summing)
        with pytest.raises(TimeoutError):
            summed.result(0.5)
    summed.result(10)
    hour = CardHour.objects.get(card__in=Card.objects.all(), hour=HOUR)
    assert (hour.samples, hour.utilization_max) == (1, 5)
