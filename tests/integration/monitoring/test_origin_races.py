"""Whoever ends what an origin told, while the origin still tells."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction

from apps.accounts.models import User
from apps.accounts.services.personal_tokens import token_digest
from apps.fleet.models import Card, Cluster, Node
from apps.monitoring.models import Fault
from apps.monitoring.services import metric_ingestion
from apps.monitoring.services.faults import faults_acknowledge, signals_record
from apps.monitoring.services.metric_ingestion import (
    MetricPush,
    agent_token_revoke,
    metric_push_record,
    metric_source_delete,
)
from apps.telemetry.models import CardMetrics, NodeToken, Source
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.telemetry.metrics import CardMetricsReading
from tests import factories
from tests.contract.waiting import until
from tests.integration.monitoring.wards import NOON, seconds_later, sign, ward
from tests.integration.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 120.0


@pytest.fixture
def node() -> Node:
    node = Node.objects.create(
        cluster=Cluster.objects.create(name="east", kind="simulated"), name="n7"
    )
    Card.objects.create(node=node, index=0, chip="nvidia-h200")
    return node


@pytest.fixture
def olga() -> User:
    return factories.user("olga", team=factories.team("watch"), role=TeamRole.VIEWER, operator=True)


def _is_blocked(*, others: int = 1) -> bool:
    """Whether so many connections to this database wait for a lock."""
    with connection.cursor() as cursor:
        # A transaction sees the same activity again otherwise.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        (count,) = cursor.fetchone()
    return bool(count >= others)


def _until_blocked(*, others: int = 1) -> None:
    until(partial(_is_blocked, others=others), what="somebody waits for a lock")


def test_a_source_is_deleted_while_it_is_read(
    node: Node, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source.objects.create(
        name="dcgm", cluster=node.cluster, kind="exporter", options={}, every=5
    )

    def read(seconds: int) -> None:
        at = seconds_later(seconds)
        reading = CardMetricsReading(node="n7", index=0, vendor="nvidia", at=at, faults=("79",))
        metric_ingestion.readings_record(source=source, at=at, readings=[reading])

    read(0)
    written = threading.Event()

    def slowly(**terms: Any) -> int:
        """Faults are told once the deletion waits for the figures that this reading has written."""
        written.set()
        _until_blocked()
        return signals_record(**terms)

    monkeypatch.setattr(metric_ingestion, "signals_record", slowly)

    def delete() -> None:
        assert written.wait(PATIENCE)
        metric_source_delete(source=Source.objects.get(), actor=olga, at=seconds_later(6))

    assert at_once(partial(read, 5), delete) == [None, None]
    assert not Source.objects.exists()
    assert not Fault.objects.filter(ended_at=None).exists()
    assert CardMetrics.objects.get().source is None


def test_who_revokes_the_last_token_beside_another_ends_what_the_agent_told(
    node: Node, olga: User
) -> None:
    tokens = [_token(node) for _ in range(2)]
    text = 'DCGM_FI_DEV_XID_ERRORS{gpu="0",Hostname="n7"} 79\n'
    push = MetricPush(vendor="nvidia", sequence=1, measured_at=NOON, text=text)
    metric_push_record(token=tokens[0], push=push, at=NOON)
    assert Fault.objects.filter(ended_at=None).count() == 1
    revoked = threading.Event()

    def first() -> None:
        with transaction.atomic():
            agent_token_revoke(token=tokens[0], actor=olga, at=NOON)
            revoked.set()
            _until_blocked()

    def second() -> None:
        assert revoked.wait(PATIENCE)
        agent_token_revoke(token=tokens[1], actor=olga, at=NOON)

    assert at_once(first, second) == [None, None]
    assert not NodeToken.objects.filter(revoked_at=None).exists()
    assert not Fault.objects.filter(ended_at=None).exists()


def test_what_is_over_never_ended_before_it_began(node: Node, olga: User) -> None:
    token = _token(node)
    text = 'DCGM_FI_DEV_XID_ERRORS{gpu="0",Hostname="n7"} 79\n'
    at = NOON + timedelta(seconds=9)
    metric_push_record(
        token=token, push=MetricPush(vendor="nvidia", sequence=1, measured_at=at, text=text), at=at
    )
    agent_token_revoke(token=token, actor=olga, at=NOON)
    fault = Fault.objects.get()
    assert fault.began_at == fault.ended_at == at


def test_faults_are_read_by_a_person_while_they_are_told_again(olga: User) -> None:
    cluster = ward(nodes=3)
    for number in (2, 0, 1):
        signals_record(signals=[sign(cluster, node=f"north-{number}")], at=NOON)
    by_node = {fault.node.name: fault for fault in Fault.objects.select_related("node")}
    held = threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Fault.objects.select_for_update().get(pk=by_node["north-1"].pk)
            held.set()
            _until_blocked(others=2)

    def report() -> None:
        assert held.wait(PATIENCE)
        again = [sign(cluster, node=f"north-{number}", seconds=5) for number in range(3)]
        signals_record(signals=again, at=seconds_later(5))

    def acknowledge() -> None:
        assert held.wait(PATIENCE)
        _until_blocked()
        uids = [by_node["north-2"].uid, by_node["north-0"].uid]
        faults_acknowledge(uids=uids, note="seen", actor=olga, at=seconds_later(5))

    calls: tuple[Callable[[], None], ...] = (hold, report, acknowledge)
    assert at_once(*calls) == [None, None, None]
    assert Fault.objects.filter(note="seen").count() == 2


def _token(node: Node) -> NodeToken:
    text = node_token_issue(node=node, actor=None)
    return NodeToken.objects.select_related("node__cluster").get(digest=token_digest(text))
