"""Signs become faults: one row for each while it stands."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from apps.fleet.models import Node
from apps.monitoring.models import Decision, Fault, Isolation
from apps.monitoring.services.faults import (
    FAULT_RETENTION,
    faults_prune,
    signals_record,
    stale_faults_end,
)
from controlplane.domain.health.faults import FaultLevel, FaultSignal, SignalOrigin
from controlplane.domain.health.snapshots import HealthAction
from controlplane.outbox.models import OutboxMessage
from tests.integration.monitoring.wards import NOON, card, seconds_later, sign, ward

pytestmark = pytest.mark.django_db


def _record(*signals: FaultSignal) -> int:
    return signals_record(signals=signals, at=NOON + timedelta(minutes=1))


def test_a_sign_that_is_told_again_counts_and_makes_no_second_fault() -> None:
    cluster = ward()
    assert _record(sign(cluster)) == 1
    assert _record(sign(cluster, seconds=5), sign(cluster, seconds=10, message="again")) == 2
    fault = Fault.objects.get()
    assert fault.card == card(cluster)
    assert (fault.count, fault.began_at, fault.reported_at) == (
        3,
        NOON,
        NOON + timedelta(seconds=10),
    )
    assert fault.message == "again"


def test_the_same_sign_twice_and_an_older_one_change_nothing() -> None:
    cluster = ward()
    _record(sign(cluster, seconds=5))
    before = Fault.objects.values().get()
    _record(sign(cluster, seconds=5))
    _record(sign(cluster, seconds=1))
    assert Fault.objects.values().get() == before


def test_a_fault_that_is_over_ends_and_comes_again_as_another_one() -> None:
    cluster = ward()
    _record(sign(cluster))
    _record(sign(cluster, seconds=5, active=False))
    _record(sign(cluster, seconds=3))
    ended = Fault.objects.get()
    assert ended.ended_at == NOON + timedelta(seconds=5)
    _record(sign(cluster, seconds=9))
    assert Fault.objects.filter(ended_at=None).get().began_at == NOON + timedelta(seconds=9)
    assert Fault.objects.count() == 2


def test_what_came_and_went_within_one_batch_is_kept_as_a_fault_that_is_over() -> None:
    cluster = ward()
    _record(sign(cluster), sign(cluster, seconds=2, active=False))
    fault = Fault.objects.get()
    assert (fault.began_at, fault.ended_at) == (NOON, NOON + timedelta(seconds=2))


def test_a_fault_of_the_node_itself_stands_once_as_well() -> None:
    cluster = ward()
    _record(sign(cluster, index=None))
    _record(sign(cluster, index=None, seconds=1))
    fault = Fault.objects.get()
    assert (fault.card, fault.node.name, fault.count) == (None, "north-0", 2)


def test_unknown_nodes_and_cards_are_left_out_and_spoil_nothing() -> None:
    cluster = ward()
    signals = [sign(cluster), sign(cluster, node="nobody"), sign(cluster, index=9)]
    assert _record(*signals, replace(sign(cluster), cluster="elsewhere")) == 1
    assert Fault.objects.count() == 1


def test_the_loop_is_called_once_for_whatever_is_new_worse_or_over() -> None:
    cluster, other = ward(), ward("south", nodes=1)
    messages = OutboxMessage.objects.filter(topic="faults.changed", delivered_at=None)

    def called() -> list[str]:
        uids = [message.payload["cluster_uid"] for message in messages.order_by("id")]
        messages.update(delivered_at=NOON)
        return uids

    _record(*(sign(cluster, index=index) for index in range(4)))
    _record(sign(cluster, node="north-1"), sign(other, node="south-0"))
    assert sorted(called()) == sorted([cluster.uid, other.uid])
    _record(sign(cluster, seconds=5))
    assert called() == []
    _record(sign(cluster, code="94", level=FaultLevel.RESTART_JOB))
    assert called() == [cluster.uid]
    _record(sign(cluster, code="94", level=FaultLevel.RESET_NOW, seconds=1))
    assert called() == [cluster.uid]
    _record(sign(cluster, code="94", seconds=2, active=False))
    assert called() == [cluster.uid]


def test_a_clock_that_is_ahead_is_not_believed() -> None:
    cluster = ward()
    _record(sign(cluster, seconds=7200))
    fault = Fault.objects.get()
    assert (fault.began_at, fault.reported_at) == (seconds_later(60), seconds_later(60))
    signals_record(signals=[sign(cluster, seconds=90, active=False)], at=seconds_later(120))
    fault.refresh_from_db()
    assert fault.ended_at == seconds_later(90)


def test_what_ended_long_ago_is_forgotten_with_its_decisions() -> None:
    cluster = ward()
    _record(sign(cluster), sign(cluster, index=None), *(sign(cluster, index=one) for one in (0, 2)))
    over, whole, recent, explaining = (
        Fault.objects.get(card__index=1),
        Fault.objects.get(card=None),
        Fault.objects.get(card__index=0),
        Fault.objects.get(card__index=2),
    )
    for fault, ended in ((over, 1), (explaining, 1), (recent, 3600)):
        Fault.objects.filter(pk=fault.pk).update(ended_at=seconds_later(ended))
    for answered in (over, whole, recent, explaining, None):
        _decided(answered, node=over.node)
    Isolation.objects.create(
        node=over.node, card=explaining.card, fault=explaining, reason="it fell off", began_at=NOON
    )

    assert faults_prune(at=seconds_later(60) + FAULT_RETENTION) == 1

    retained = {whole.pk, recent.pk, explaining.pk}
    assert set(Fault.objects.values_list("pk", flat=True)) == retained
    assert set(Decision.objects.values_list("fault", flat=True)) == retained


def _decided(fault: Fault | None, *, node: Node) -> None:
    Decision.objects.create(
        node=node,
        fault=fault,
        action=HealthAction.NOTE,
        outcome=Decision.Outcome.DONE,
        reason="it fell off",
        at=NOON,
    )


def test_what_a_job_left_behind_lapses_when_it_is_not_told_of_again() -> None:
    cluster = ward()
    _record(sign(cluster, origin=SignalOrigin.JOB, code="nccl"), sign(cluster))
    assert (
        stale_faults_end(
            after={SignalOrigin.JOB: timedelta(hours=24)}, at=NOON + timedelta(hours=25)
        )
        == 1
    )
    assert Fault.objects.filter(ended_at=None).get().origin == SignalOrigin.EXPORTER


def test_what_was_wrong_with_the_nodes_of_a_removed_cluster_is_over_with_the_next_turn() -> None:
    gone, there = ward("gone"), ward("there")
    _record(sign(gone), sign(gone, index=None, origin=SignalOrigin.CONDITION), sign(there))
    Node.objects.filter(cluster=gone).update(removed_at=NOON)
    at = NOON + timedelta(minutes=2)
    assert stale_faults_end(after={}, at=at) == 2
    assert Fault.objects.filter(ended_at=None).get().node.cluster == there
    assert stale_faults_end(after={}, at=at) == 0


def test_statements_do_not_grow_in_number_with_the_signs(
    django_assert_max_num_queries: object,
) -> None:
    cluster = ward("wide", nodes=20, cards=8)
    signals = [
        sign(cluster, node=f"wide-{node}", index=index) for node in range(20) for index in range(8)
    ]
    with django_assert_max_num_queries(8):  # type: ignore[operator]
        assert _record(*signals) == 160
