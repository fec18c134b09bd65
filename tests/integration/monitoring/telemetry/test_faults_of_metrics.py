"""Codes of faults and changed serial numbers in figures become faults, and end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from apps.fleet.models import Card
from apps.fleet.services import inventory_record
from apps.monitoring.models import Decision, Fault
from apps.monitoring.services.metric_ingestion import metric_source_delete
from apps.telemetry.models import Source
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.domain.health.faults import SignalOrigin
from controlplane.outbox.models import OutboxMessage
from controlplane.ports.clusters import ObservedCard, ObservedNode
from tests import factories
from tests.integration.monitoring.telemetry.metric_scenarios import (
    AT,
    cluster_of,
    reading,
    record,
    source_of,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def source() -> Source:
    return source_of(cluster_of())


def standing() -> set[tuple[str, int | None, str, int]]:
    rows = Fault.objects.filter(ended_at=None).values_list(
        "node__name", "card__index", "code", "level"
    )
    return set(rows)


def test_a_code_stands_until_a_reading_comes_without_it(source: Source) -> None:
    record(source, reading(faults=("79", "31")), reading("n1", 2, faults=()))
    assert standing() == {("n0", 0, "79", 6), ("n0", 0, "31", 3)}

    later = AT + timedelta(seconds=5)
    record(source, reading(at=later, faults=("79",)), at=later)

    assert standing() == {("n0", 0, "79", 6)}
    assert Fault.objects.get(code="79").vendor == "nvidia"


def test_a_source_that_does_not_speak_of_faults_ends_none(source: Source) -> None:
    record(source, reading(faults=("79",)))
    later = AT + timedelta(seconds=5)
    record(source, reading(at=later, faults=None), at=later)
    assert standing() == {("n0", 0, "79", 6)}


def test_a_batch_that_was_overtaken_wakes_no_old_fault(source: Source) -> None:
    record(source, reading(faults=()))
    earlier = AT - timedelta(seconds=30)
    recorded = record(source, reading(at=earlier, faults=("79",)))
    assert recorded.signals == 0
    assert standing() == set()


def test_what_an_exporter_says_an_agent_does_not_take_back(source: Source) -> None:
    record(source, reading(faults=("79",)))
    later = AT + timedelta(seconds=5)
    record(source, reading(at=later, faults=()), at=later, origin=SignalOrigin.AGENT, node="n0")
    assert standing() == {("n0", 0, "79", 6)}


def test_what_a_deleted_source_alone_told_is_over_and_the_history_says_why(
    source: Source,
) -> None:
    operator = factories.user("olga", team=factories.team(), role=TeamRole.VIEWER, operator=True)
    other = source_of(source.cluster, name="npu")
    elsewhere = source_of(cluster_of(name="west"), name="west")
    pushed = source_of(source.cluster, name="agents", kind="push")
    later = AT + timedelta(seconds=5)
    for place, reporter in enumerate((source, other, source)):
        record(reporter, reading("n0", place, faults=("79",)))
    record(elsewhere, reading("n0", faults=("79",)))
    record(pushed, reading("n1", faults=("31",)), origin=SignalOrigin.AGENT, node="n1")
    # Another exporter, and the node's agent, were the last to tell of these two.
    record(pushed, reading("n0", 2, at=later, faults=("31",)), at=later, origin=SignalOrigin.AGENT)
    assert len(Fault.objects.filter(ended_at=None)) == 6
    OutboxMessage.objects.all().delete()

    metric_source_delete(source=pushed, actor=operator, at=later)
    assert len(Fault.objects.filter(ended_at=None)) == 6, "it comes back with the next batch"
    metric_source_delete(source=source, actor=operator, at=later)

    over = Fault.objects.filter(ended_at=later)
    assert sorted(over.values_list("origin", "card__index")) == [("exporter", 0), ("exporter", 2)]
    assert standing() == {
        ("n0", 0, "79", 6),
        ("n0", 1, "79", 6),
        ("n1", 0, "31", 3),
        ("n0", 2, "31", 3),
    }
    assert Fault.objects.filter(ended_at=None, node__cluster=elsewhere.cluster).count() == 1
    assert set(Decision.objects.values_list("fault", "reason", "actor_name")) == {
        (fault.pk, "source dcgm was deleted; no other source reports this fault", "olga")
        for fault in over
    }
    assert OutboxMessage.objects.filter(topic="faults.changed").count() == 1


def test_what_still_stands_is_told_again_by_the_source_that_comes_after(source: Source) -> None:
    operator = factories.user("olga", team=factories.team(), role=TeamRole.VIEWER, operator=True)
    later = AT + timedelta(seconds=5)
    record(source, reading(faults=("79",)))
    metric_source_delete(source=source, actor=operator, at=AT)
    assert standing() == set()
    again = source_of(source.cluster, name="again")
    record(again, reading(at=later, faults=("79",)), at=later)
    assert standing() == {("n0", 0, "79", 6)}


def test_the_first_serial_number_is_learned_without_a_word(source: Source) -> None:
    record(source, reading(serial="GPU-a", faults=()))
    assert Card.objects.get(node__name="n0", index=0).serial == "GPU-a"
    assert standing() == set()


def test_a_replaced_card_is_noted_once_and_known_by_its_new_number(
    source: Source, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    for seconds, serial, noted in ((0, "GPU-a", 0), (5, "GPU-b", 1), (10, "GPU-b", 0)):
        at = AT + timedelta(seconds=seconds)
        with django_capture_on_commit_callbacks(execute=True):
            record(source, reading(at=at, serial=serial, faults=()), at=at)
        assert len(standing()) == noted
    fault = Fault.objects.get()
    assert (fault.code, fault.level) == ("card-replaced", 1)
    assert "GPU-a" in fault.message
    assert "GPU-b" in fault.message
    assert Card.objects.get(node__name="n0", index=0).serial == "GPU-b"


def test_a_card_that_moved_is_noted_with_where_it_was(
    source: Source, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        record(source, reading("n0", 1, serial="GPU-a"), reading("n1", 3, serial="GPU-b"))
    later = AT + timedelta(seconds=5)
    record(source, reading("n1", 3, at=later, serial="GPU-a"), at=later)

    fault = Fault.objects.get()
    assert (fault.code, str(fault.card)) == (
        "card-moved",
        str(Card.objects.get(node__name="n1", index=3)),
    )
    assert "has been moved to this slot from n0, index 1" in fault.message


def test_two_sources_that_number_cards_differently_do_not_replace_them(
    source: Source, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    other = source_of(source.cluster, name="prometheus")
    for seconds in range(0, 40, 5):
        at = AT + timedelta(seconds=seconds)
        which, serial = (source, "GPU-a") if seconds % 10 else (other, "0321")
        with django_capture_on_commit_callbacks(execute=True):
            record(which, reading(at=at, serial=serial, faults=()), at=at)
    assert Fault.objects.count() == 0
    assert Card.objects.get(node__name="n0", index=0).serial == "0321"


@pytest.mark.parametrize(("reported", "serial"), [("", "GPU-a"), ("SN-1", "SN-1")])
def test_what_a_cluster_reports_goes_before_what_figures_say(
    source: Source, reported: str, serial: str
) -> None:
    record(source, reading(serial="GPU-a"))
    node = ObservedNode(
        name="n0",
        cards=(ObservedCard(index=0, chip="nvidia-h200", serial=reported),),
        capacity=Resources(cpu=Millicpu(8000), memory=Bytes(16 << 30)),
    )
    inventory_record(cluster=source.cluster, nodes=[node], isolation="", at=AT)
    assert Card.objects.get(node__name="n0", index=0).serial == serial
