"""What clusters say is wrong becomes faults while they say it; a silent cluster says nothing of its cards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from apps.fleet import selectors
from apps.fleet.models import Cluster
from apps.monitoring.models import Fault
from apps.monitoring.reconcilers import health
from apps.monitoring.reconcilers.health import REMINDED_AFTER, cluster_signals_sync
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.outbox.models import OutboxMessage
from controlplane.ports.clusters import (
    NODE_UNREACHABLE,
    ClusterDiagnosis,
    ClusterSignal,
    UnreadableSource,
)
from tests.contract.waiting import until
from tests.integration.monitoring.wards import NOON, ward

pytestmark = pytest.mark.django_db
MINDCLUSTER = SignalOrigin.MINDCLUSTER


@pytest.fixture(autouse=True)
def adapters_of_their_own() -> Iterator[None]:
    """What a fake was told must not be heard by the next test."""
    selectors._cached_adapter.cache_clear()
    yield
    selectors._cached_adapter.cache_clear()


def faked(name: str = "north") -> tuple[Cluster, FakeCluster]:
    row = ward(name, kind="fake", options={"namespace": name})
    return row, cast(FakeCluster, selectors.cluster_adapter(row))


def sign(node: str = "north-0", **given: Any) -> ClusterSignal:
    defaults: dict[str, Any] = {"index": 1, "origin": MINDCLUSTER, "code": "A", "vendor": "ascend"}
    return ClusterSignal(node=node, **{**defaults, "level": FaultLevel.ISOLATE, **given})


def turn(seconds: float = 0) -> int:
    return cluster_signals_sync(at=NOON + timedelta(seconds=seconds))


def standing() -> set[tuple[str, int | None, str, int]]:
    rows = Fault.objects.filter(ended_at=None)
    return set(rows.values_list("node__name", "card__index", "code", "level"))


def test_what_a_cluster_says_stands_until_it_no_longer_says_it() -> None:
    _, fake = faked()
    fake.set_diagnosis(ClusterDiagnosis(signals=(sign(), sign(code="B", index=None))))
    assert turn() == 1
    assert standing() == {("north-0", 1, "A", 6), ("north-0", None, "B", 6)}
    fake.set_diagnosis(ClusterDiagnosis(signals=(sign(code="B", index=None),)))
    turn(5)
    assert standing() == {("north-0", None, "B", 6)}
    assert Fault.objects.get(code="A").ended_at == NOON + timedelta(seconds=5)
    fake.set_diagnosis(ClusterDiagnosis(signals=(sign(),)))
    turn(10)
    assert standing() == {("north-0", 1, "A", 6)}
    assert Fault.objects.filter(code="A").count() == 2


def test_what_stays_as_it_is_is_written_once_and_told_again_now_and_then() -> None:
    _, fake = faked()
    fake.set_diagnosis(ClusterDiagnosis(signals=(sign(),)))
    turn()
    OutboxMessage.objects.all().delete()
    for seconds in (5, 10, 15):
        turn(seconds)
    fault = Fault.objects.get()
    assert (fault.count, fault.reported_at) == (1, NOON)
    assert not OutboxMessage.objects.exists()
    turn(REMINDED_AFTER.total_seconds())
    fault.refresh_from_db()
    assert (fault.count, fault.reported_at) == (2, NOON + REMINDED_AFTER)


def test_what_becomes_worse_is_told_at_once() -> None:
    _, fake = faked()
    fake.set_diagnosis(ClusterDiagnosis(signals=(sign(level=FaultLevel.NOTE),)))
    turn()
    OutboxMessage.objects.all().delete()
    fake.set_diagnosis(ClusterDiagnosis(signals=(sign(),)))
    turn(5)
    assert standing() == {("north-0", 1, "A", 6)}
    assert OutboxMessage.objects.filter(topic="faults.changed").count() == 1


def test_where_nobody_says_how_bad_a_code_is_its_vendors_table_does() -> None:
    _, fake = faked()
    codes = {"80BB8000": 2, "80E01801": 3, "never heard of": 6}
    found = tuple(sign(code=code, level=None) for code in codes)
    fake.set_diagnosis(
        ClusterDiagnosis(signals=(*found, sign(code="small", level=None, minor=True)))
    )
    turn()
    assert {(code, level) for _, _, code, level in standing()} == {*codes.items(), ("small", 1)}


@pytest.mark.parametrize(
    ("unreadable", "left"),
    [
        (UnreadableSource(origin=MINDCLUSTER, reason="refused"), {"north-0", "north-1"}),
        (UnreadableSource(origin=MINDCLUSTER, node="north-1", reason="not JSON"), {"north-1"}),
        (UnreadableSource(origin=SignalOrigin.CONDITION, reason="refused"), set()),
    ],
)
def test_what_could_not_be_read_is_not_over(unreadable: UnreadableSource, left: set[str]) -> None:
    _, fake = faked()
    fake.set_diagnosis(ClusterDiagnosis(signals=(sign(), sign("north-1"))))
    turn()
    fake.set_diagnosis(ClusterDiagnosis(unreadable=(unreadable,)))
    turn(5)
    assert {node for node, *_ in standing()} == left


def test_a_cluster_that_does_not_answer_changes_nothing_and_spoils_no_other() -> None:
    _, unreachable = faked("north")
    _, other = faked("south")
    unreachable.set_diagnosis(ClusterDiagnosis(signals=(sign(),)))
    turn()
    unreachable.lose_contact()
    other.set_diagnosis(ClusterDiagnosis(signals=(sign("south-0"),)))
    assert turn(5) == 1
    assert {node for node, *_ in standing()} == {"north-0", "south-0"}


def test_a_cluster_that_takes_its_time_is_heard_later_and_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "PATIENCE", 0.05)
    _, slow = faked("north")
    _, quick = faked("south")
    quick.set_diagnosis(ClusterDiagnosis(signals=(sign("south-0"),)))
    answer, asked = threading.Event(), []

    def diagnose() -> ClusterDiagnosis:
        asked.append(1)
        assert answer.wait(10)
        return ClusterDiagnosis(signals=(sign(),))

    monkeypatch.setattr(slow, "diagnose", diagnose)
    assert turn() == 1
    assert turn(5) == 1
    assert {node for node, *_ in standing()} == {"south-0"}
    answer.set()
    monkeypatch.setattr(health, "PATIENCE", 10)
    until(lambda: all(each.done() for each in health._open.values()), what="it answers")
    assert turn(10) == 2
    assert len(asked) == 1
    assert {node for node, *_ in standing()} == {"north-0", "south-0"}


def test_a_diagnosis_that_fails_is_asked_again_in_the_next_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, fake = faked()
    with monkeypatch.context() as patched:
        patched.setattr(fake, "diagnose", lambda: 1 / 0)
        assert turn() == 0
    assert turn(5) == 1


def test_the_silence_of_a_node_stands_until_it_is_heard_and_that_of_others_is_left_alone() -> None:
    _, fake = faked()
    fake.set_diagnosis(
        ClusterDiagnosis(
            signals=(sign(index=None, origin=SignalOrigin.SILENCE, code=NODE_UNREACHABLE),)
        )
    )
    turn()
    fault = Fault.objects.get()
    others = Fault.objects.create(
        node=fault.node, origin=SignalOrigin.SILENCE, code="no figures", level=6,
        began_at=NOON, reported_at=NOON, noticed_at=NOON,
    )  # fmt: skip
    fake.set_diagnosis(ClusterDiagnosis())
    turn(5)
    assert list(Fault.objects.filter(ended_at=None)) == [others]


def test_an_event_is_a_moment_which_is_told_once() -> None:
    _, fake = faked()

    def event(since: datetime, *, active: bool = True) -> ClusterSignal:
        return sign(origin=SignalOrigin.EVENT, index=None, since=since, active=active)

    fake.set_diagnosis(ClusterDiagnosis(signals=(event(NOON - timedelta(minutes=1)),)))
    turn()
    turn(5)
    assert Fault.objects.get().count == 1
    fake.set_diagnosis(ClusterDiagnosis())
    turn(10)
    assert Fault.objects.get().ended_at is None
    over = event(NOON + timedelta(seconds=12), active=False)
    fake.set_diagnosis(ClusterDiagnosis(signals=(event(NOON - timedelta(minutes=1)), over)))
    turn(15)
    assert Fault.objects.get().ended_at == NOON + timedelta(seconds=12)
    turn(20)
    assert Fault.objects.count() == 1


def test_one_cluster_alone_is_asked_when_news_of_it_comes() -> None:
    row, fake = faked("north")
    _, other = faked("south")
    fake.set_diagnosis(ClusterDiagnosis(signals=(sign(),)))
    other.set_diagnosis(ClusterDiagnosis(signals=(sign("south-0"),)))
    assert cluster_signals_sync(at=NOON, uid=row.uid) == 1
    assert {node for node, *_ in standing()} == {"north-0"}


def test_a_cluster_of_a_kind_that_says_nothing_or_is_not_known_is_not_asked() -> None:
    ward("here", kind="local")
    ward("gone", kind="no such kind")
    assert turn() == 0
