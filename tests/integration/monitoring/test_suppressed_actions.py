"""What the guard held back of a pool: counted with its cost, then taken out of use or left by one act."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import AuditEntry, User
from apps.accounts.selectors import PermissionRefused
from apps.fleet.models import Card, Cluster, Node
from apps.monitoring.models import Decision, Fault, HealthPolicy, Isolation
from apps.monitoring.reconcilers.health import health_reconcile
from apps.monitoring.selectors.suppressed_actions import (
    SuppressedCount,
    SuppressedPool,
    suppressed_counts,
    suppressed_pools,
)
from apps.monitoring.services import suppressed_actions
from apps.monitoring.services.faults import faults_acknowledge, signals_record
from apps.monitoring.services.isolations import (
    IsolationRefused,
    isolations_release,
    isolations_request,
)
from apps.monitoring.services.suppressed_actions import (
    SuppressedActionsRequest,
    SuppressedActionsResult,
    suppressed_pool_dismiss,
    suppressed_pool_isolate,
    suppressed_pool_preview,
)
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.common.topology import network_labels
from controlplane.domain.health.faults import FaultLevel, FaultSignal, SignalOrigin
from tests import factories
from tests.integration.company import Company
from tests.integration.founding import committed_company, company, installation
from tests.integration.monitoring.wards import NOON, card, seconds_later, sign, ward
from tests.integration.threads import at_once

__all__ = ["committed_company", "company", "installation"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> User:
    team = factories.team("watch")
    return factories.user("olga", team=team, role=TeamRole.VIEWER, operator=True)


def _report(*signals: FaultSignal) -> None:
    signals_record(signals=signals, at=signals[0].at)


def _storm(*, nodes: int = 5, level: FaultLevel = FaultLevel.ISOLATE) -> Cluster:
    """One bad card on each node of four: of twenty cards the guard lets two go."""
    cluster = ward(nodes=nodes)
    _report(*(sign(cluster, node=f"north-{node}", level=level) for node in range(nodes)))
    health_reconcile(at=seconds_later(1))
    return cluster


def _only() -> SuppressedPool:
    (pool,) = suppressed_pools(at=seconds_later(2))
    return pool


def _request(pool: SuppressedPool) -> SuppressedActionsRequest:
    return SuppressedActionsRequest(
        cluster=pool.cluster_uid, chip=pool.chip, until=pool.until, shown=pool.isolations
    )


def _isolate(pool: SuppressedPool, actor: User) -> SuppressedActionsResult:
    return suppressed_pool_isolate(
        _request(pool), reason="a bad batch", actor=actor, at=seconds_later(3)
    )


def _out() -> int:
    return Card.objects.filter(state=CardState.ISOLATED).count()


def test_what_waits_is_counted_with_what_it_would_cost() -> None:
    cluster = ward(nodes=5)
    Node.objects.filter(name__in=("north-3", "north-4")).update(
        labels=network_labels({"rack": "r7"})
    )
    _report(*(sign(cluster, node=f"north-{node}") for node in (0, 1)))
    health_reconcile(at=seconds_later(1))
    _report(
        *(sign(cluster, node=f"north-{node}", seconds=2) for node in (2, 3, 4)),
        sign(cluster, node="north-4", index=0, code="48", level=FaultLevel.RESET_NOW, seconds=2),
    )
    health_reconcile(at=seconds_later(3))
    pool = _only()
    assert (pool.name, pool.isolations, pool.nodes) == ("cpu in north", 4, 3)
    assert (pool.since, pool.codes) == (seconds_later(3), [("79", 3), ("48", 1)])
    assert pool.parts == [("rack/r7", 3)]
    assert (pool.size, pool.out, pool.usable, pool.cards, pool.left) == (20, 2, 18, 4, 14)
    assert suppressed_counts() == SuppressedCount(isolations=4, nodes=3)


def test_a_node_that_is_to_go_takes_its_cards_along_in_the_count(operator: User) -> None:
    cluster = ward(nodes=5)
    _report(*(sign(cluster, node=f"north-{node}") for node in (0, 1)))
    health_reconcile(at=seconds_later(1))
    _report(*(sign(cluster, node="north-4", index=index, seconds=2) for index in range(3)))
    health_reconcile(at=seconds_later(3))
    pool = _only()
    assert (pool.isolations, pool.nodes, pool.cards) == (1, 1, 4)
    assert suppressed_counts() == SuppressedCount(isolations=1, nodes=1)
    assert _isolate(pool, operator).done == 1
    assert Isolation.objects.get(card=None).node.name == "north-4"


def test_work_that_would_stop_is_counted_once(company: Company) -> None:
    company.running(cards=2)
    HealthPolicy.objects.create(automatic=False, changed_at=company.at)
    node = Node.objects.get(cluster=company.cluster_row).name
    signals = [sign(company.cluster_row, node=node, index=index, at=company.at) for index in (0, 1)]
    signals_record(signals=signals, at=company.at)
    health_reconcile(at=company.at)
    (pool,) = suppressed_pools(at=company.at)
    assert (pool.isolations, pool.works) == (2, 1)


def test_all_of_it_goes_out_of_use_by_one_act_of_a_person(operator: User) -> None:
    _storm()
    assert _isolate(_only(), operator).done == 3
    assert _out() == 5
    assert Isolation.objects.filter(actor_name="olga", reason="a bad batch").count() == 3
    entry = AuditEntry.objects.get(action="held_back.isolate")
    assert (entry.object_name, entry.detail["count"]) == ("cpu in north", 3)
    assert entry.detail["reason"] == "a bad batch"
    assert suppressed_pools(at=seconds_later(4)) == []
    assert suppressed_counts() == SuppressedCount(isolations=0, nodes=0)


def test_it_goes_as_far_as_the_rule_wanted(operator: User) -> None:
    _storm(level=FaultLevel.RESET_WHEN_IDLE)
    _isolate(_only(), operator)
    assert _out() == 0
    assert Card.objects.filter(state=CardState.NO_NEW_WORK).count() == 5


def test_a_card_that_takes_no_new_work_waits_for_what_is_more(operator: User) -> None:
    cluster = _storm(level=FaultLevel.RESET_WHEN_IDLE)
    _isolate(_only(), operator)
    HealthPolicy.objects.create(automatic=False, changed_at=NOON)
    _report(sign(cluster, node="north-0", code="48", seconds=10))
    health_reconcile(at=seconds_later(11))
    pool = _only()
    assert (pool.isolations, pool.cards) == (1, 0)
    assert _isolate(pool, operator).done == 1
    assert suppressed_pools(at=seconds_later(12)) == []


def test_who_presses_second_changes_nothing_and_writes_nothing(operator: User) -> None:
    _storm()
    pool = _only()
    _isolate(pool, operator)
    entries = AuditEntry.objects.count()
    again = _isolate(pool, operator)
    assert (again.pool, again.done, again.left_out) == (None, 0, 3)
    left = suppressed_pool_dismiss(
        _request(pool), reason="too late", actor=operator, at=seconds_later(4)
    )
    assert (left.done, left.left_out) == (0, 3)
    assert AuditEntry.objects.count() == entries


def test_what_no_longer_holds_is_left_out_and_said(operator: User) -> None:
    cluster = _storm()
    pool = _only()
    over, gone, _ = (row.node for row in Decision.objects.filter(outcome="held_back"))
    _report(sign(cluster, node=over.name, seconds=5, active=False))
    isolations_request(
        cards=[Card.objects.get(node=gone, index=1).uid],
        reason="saw it",
        actor=operator,
        at=seconds_later(5),
    )
    preview = suppressed_pool_preview(_request(pool), actor=operator, at=seconds_later(6))
    assert (preview.pool is not None and preview.pool.isolations, preview.left_out) == (1, 2)
    done = _isolate(pool, operator)
    assert (done.done, done.left_out) == (1, 2)
    assert Card.objects.get(node=over, index=1).state == CardState.USABLE


def test_what_ended_between_two_batches_is_left_out(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    _storm()
    monkeypatch.setattr(suppressed_actions, "MOST_AT_ONCE", 2)

    def and_the_rest_is_over(**given: Any) -> list[Isolation]:
        begun = isolations_request(**given)
        Fault.objects.update(ended_at=seconds_later(3))
        return begun

    monkeypatch.setattr(suppressed_actions, "isolations_request", and_the_rest_is_over)
    done = _isolate(_only(), operator)
    assert (done.done, done.left_out) == (2, 1)


def test_what_came_after_the_page_was_shown_is_not_touched(operator: User) -> None:
    cluster = _storm()
    pool = _only()
    _report(sign(cluster, node="north-0", index=3, seconds=5))
    health_reconcile(at=seconds_later(6))
    assert _only().isolations == 4
    done = _isolate(pool, operator)
    assert (done.done, done.left_out) == (3, 0)
    assert card(cluster, 0, 3).state == CardState.USABLE
    assert _only().isolations == 1


def test_another_pool_is_not_touched(operator: User) -> None:
    cluster = _storm()
    _report(*(sign(cluster, node=f"north-{node}", index=2, seconds=5) for node in range(5)))
    Card.objects.filter(index=2).update(chip="nvidia-h20")
    health_reconcile(at=seconds_later(6))
    by_chip = {pool.chip: pool for pool in suppressed_pools(at=seconds_later(7))}
    assert {chip: pool.isolations for chip, pool in by_chip.items()} == {"cpu": 3, "nvidia-h20": 5}
    _isolate(by_chip["cpu"], operator)
    assert [pool.chip for pool in suppressed_pools(at=seconds_later(8))] == ["nvidia-h20"]


def test_left_in_use_is_acknowledged_with_the_reason(operator: User) -> None:
    _storm()
    done = suppressed_pool_dismiss(
        _request(_only()), reason="firmware", actor=operator, at=seconds_later(3)
    )
    assert (done.done, done.left_out, _out()) == (3, 0, 2)
    assert Fault.objects.filter(acknowledged_by_name="olga", note="firmware").count() == 3
    assert AuditEntry.objects.get(action="held_back.leave").detail["count"] == 3
    assert suppressed_pools(at=seconds_later(4)) == []
    assert health_reconcile(at=seconds_later(5)) == 0


def test_what_a_person_gave_back_does_not_wait_again(operator: User) -> None:
    _storm()
    _isolate(_only(), operator)
    uids = list(Isolation.objects.filter(actor_name="olga").values_list("uid", flat=True))
    isolations_release(uids=uids, reason="all well", actor=operator, at=seconds_later(9))
    assert suppressed_counts().isolations == 0


def test_a_cluster_that_is_silent_as_a_whole_is_nothing_to_decide_about() -> None:
    stale: dict[str, Any] = {"index": None, "origin": SignalOrigin.SILENCE, "code": "node-silent"}
    cluster = ward(nodes=6)
    _report(*(sign(cluster, node=f"north-{node}", **stale) for node in range(3)))
    health_reconcile(at=seconds_later(30))
    assert Decision.objects.get().outcome == Decision.Outcome.HELD_BACK
    assert suppressed_pools(at=seconds_later(31)) == []


def test_both_acts_are_for_operators_and_want_a_reason(operator: User) -> None:
    _storm()
    request = _request(_only())
    viewer = User.objects.create(username="vera")
    for action in (suppressed_pool_isolate, suppressed_pool_dismiss):
        with pytest.raises(PermissionRefused):
            action(request, reason="why not", actor=viewer, at=NOON)
        with pytest.raises(IsolationRefused, match="enter a reason"):
            action(request, reason=" ", actor=operator, at=NOON)
    with pytest.raises(PermissionRefused):
        suppressed_pool_preview(request, actor=viewer, at=NOON)
    assert suppressed_counts().isolations == 3


def test_statements_do_not_grow_with_what_waits(operator: User) -> None:
    counts = []
    for nodes in (5, 12):
        Cluster.objects.all().delete()
        _storm(nodes=nodes)
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert suppressed_pools(at=seconds_later(2))
            suppressed_counts()
        counts.append(len(asked))
    assert counts == [5, 5]


def test_faults_that_somebody_read_since_do_not_wait(operator: User) -> None:
    _storm()
    uids = list(Fault.objects.values_list("uid", flat=True))
    faults_acknowledge(uids=uids, note="", actor=operator, at=seconds_later(2))
    assert suppressed_counts().isolations == 0


def test_who_read_a_fault_before_it_was_held_back_has_not_decided(operator: User) -> None:
    cluster = ward(nodes=5)
    _report(*(sign(cluster, node=f"north-{node}") for node in range(5)))
    uids = list(Fault.objects.values_list("uid", flat=True))
    faults_acknowledge(uids=uids, note="harmless", actor=operator, at=NOON)
    health_reconcile(at=seconds_later(1))
    assert _only().isolations == 3
    done = suppressed_pool_dismiss(
        _request(_only()), reason="it is not", actor=operator, at=seconds_later(3)
    )
    assert (done.done, done.left_out, suppressed_counts().isolations) == (3, 0, 0)
    assert Fault.objects.filter(note="it is not").count() == 3


def test_only_what_nobody_had_read_is_said_to_be_left(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    _storm()
    request = _request(_only())

    def overtaken(*, uids: Sequence[str], **rest: Any) -> frozenset[str]:
        faults_acknowledge(uids=uids[1:], note="", actor=operator, at=seconds_later(2))
        return faults_acknowledge(uids=uids, **rest)

    monkeypatch.setattr(suppressed_actions, "faults_acknowledge", overtaken)
    done = suppressed_pool_dismiss(request, reason="later", actor=operator, at=seconds_later(3))
    assert (done.done, done.left_out) == (1, 2)
    assert AuditEntry.objects.get(action="held_back.leave").detail["count"] == 1


def test_what_was_done_before_a_failure_is_in_the_audit(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    _storm()

    def fail_at_the_third(**terms: Any) -> object:
        if _out() == at_first + 2:
            raise DatabaseError("the disk is full")
        return isolations_request(**terms)

    at_first = _out()
    monkeypatch.setattr(suppressed_actions, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(suppressed_actions, "isolations_request", fail_at_the_third)
    with pytest.raises(DatabaseError):
        _isolate(_only(), operator)
    assert AuditEntry.objects.get(action="held_back.isolate").detail["count"] == 2


@pytest.mark.django_db(transaction=True)
def test_two_who_press_at_once_take_it_out_once(committed_company: Company) -> None:
    team = factories.team("watch")
    users = [
        factories.user(name, team=team, role=TeamRole.VIEWER, operator=True)
        for name in ("olga", "omar")
    ]
    _storm()
    pool = _only()
    outcomes = at_once(*(partial(_isolate, pool, user) for user in users))
    assert sum(each.done for each in outcomes if isinstance(each, SuppressedActionsResult)) == 3
    assert sum(each.left_out for each in outcomes if isinstance(each, SuppressedActionsResult)) == 3
    assert Isolation.objects.exclude(actor_name="").count() == 3
    counts = AuditEntry.objects.filter(action="held_back.isolate").values_list("detail", flat=True)
    assert sum(each["count"] for each in counts) == 3
