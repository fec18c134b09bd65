"""Turns of what is out of use, while the world goes on: others give it back, and another process takes over."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from apps.accounts.models import User
from apps.fleet.models import Card, Node
from apps.monitoring.models import Isolation
from apps.monitoring.reconcilers import isolations
from apps.monitoring.reconcilers.health import health_reconcile
from apps.monitoring.reconcilers.isolations import isolation_taints_reconcile, isolations_reconcile
from apps.monitoring.services.burn_ins import BurnInResult, burn_in_end
from apps.monitoring.services.faults import signals_record
from apps.monitoring.services.isolations import isolations_release, isolations_request
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.isolations import IsolationState
from controlplane.persistence.models import Lease
from controlplane.ports.clusters import TaintableCluster
from tests.integration.company import Company
from tests.integration.founding import company, installation
from tests.integration.monitoring.wards import card, seconds_later, sign, ward

__all__ = ["company", "installation"]

pytestmark = pytest.mark.django_db

AT = seconds_later(0)


@pytest.fixture(autouse=True)
def unasked(monkeypatch: pytest.MonkeyPatch) -> dict[int, object]:
    """What this process remembers of other tests is nothing to these."""
    asked: dict[int, object] = {}
    monkeypatch.setattr(isolations, "_asked", asked)
    return asked


def _ordered(operator: User, *, nodes: int) -> list[Isolation]:
    cluster = ward("far", kind="fake", nodes=nodes)
    uids = [node.uid for node in Node.objects.filter(cluster=cluster)]
    return list(isolations_request(nodes=uids, reason="fans", actor=operator, at=AT))


def _marks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    marked: list[str] = []

    def mark(_: FakeCluster, node: str, reason: str) -> bool:
        marked.append(node)
        return bool(reason)

    monkeypatch.setattr(FakeCluster, "taint_node", mark)
    return marked


def test_a_node_that_went_back_meanwhile_is_not_marked(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = _ordered(operator, nodes=1)
    marked, adapter_of = _marks(monkeypatch), isolations._taintable_cluster

    def slowly(given: Node) -> TaintableCluster | None:
        isolations_release(uids=[row.uid], reason="done", actor=operator, at=AT)
        return adapter_of(given)

    monkeypatch.setattr(isolations, "_taintable_cluster", slowly)
    assert isolation_taints_reconcile(at=AT) == 0
    row.refresh_from_db()
    assert row.ended_at is not None
    assert (marked, row.node.tainted) == ([], False)


def test_a_node_knows_that_it_is_isolated_and_tainted_until_both_are_undone(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = _ordered(operator, nodes=1)
    marked, unmarked = _marks(monkeypatch), []
    monkeypatch.setattr(FakeCluster, "untaint_node", lambda _, node: unmarked.append(node))
    node = row.node

    def state() -> tuple[datetime | None, bool, bool]:
        node.refresh_from_db()
        return node.isolated_since, node.tainted, node.cordoned

    assert state() == (AT, False, True)
    isolations_reconcile(at=AT)
    assert (state(), marked) == ((AT, True, True), [node.name])
    isolations_request(nodes=[node.uid], reason="pumps", actor=operator, at=seconds_later(5))
    assert state() == (AT, True, True), "isolated since the first order"
    isolations_release(uids=[row.uid], reason="done", actor=operator, at=AT)
    assert state() == (None, True, False)
    assert isolations_reconcile(at=AT) == 1
    assert (state(), unmarked) == ((None, False, False), [node.name])
    assert isolations_reconcile(at=AT) == 0


def test_a_node_that_is_isolated_again_keeps_its_taint(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = _ordered(operator, nodes=1)
    _marks(monkeypatch)
    isolations_reconcile(at=AT)
    unmarked: list[str] = []
    monkeypatch.setattr(FakeCluster, "untaint_node", lambda _, node: unmarked.append(node))
    isolations_release(uids=[row.uid], reason="done", actor=operator, at=AT)
    isolations_request(nodes=[row.node.uid], reason="fans", actor=operator, at=AT)
    isolations_reconcile(at=AT)
    assert unmarked == []
    assert Node.objects.get(pk=row.node_id).tainted


def test_a_turn_whose_lease_was_lost_marks_no_further_node(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ordered(operator, nodes=3)
    marked: list[str] = []

    def mark(_: FakeCluster, node: str, reason: str) -> bool:
        marked.append(node)
        # So long that another process took over.
        Lease.objects.filter(name=isolations.LEASE).update(expires_at=AT - timedelta(days=9_000))
        return bool(reason)

    monkeypatch.setattr(FakeCluster, "taint_node", mark)
    isolations_reconcile(at=AT)
    assert len(marked) == 1
    isolations_reconcile(at=AT)
    assert len(marked) == 2, "the next turn goes on"


def test_a_turn_whose_lease_was_lost_takes_no_further_step_of_a_burn_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, asked = ward("far", kind="fake", nodes=3), []
    for node in Node.objects.filter(cluster=cluster):
        Isolation.objects.create(
            node=node, state=IsolationState.TESTING, reason="fans", began_at=AT, burn_ins=1
        )

    def observe(_: FakeCluster, names: list[str]) -> dict[str, object]:
        asked.extend(names)
        Lease.objects.filter(name=isolations.LEASE).update(expires_at=AT - timedelta(days=9_000))
        return {}

    monkeypatch.setattr(FakeCluster, "observe", observe)
    marked = _marks(monkeypatch)
    isolations_reconcile(at=AT)
    assert (len(asked), marked) == (1, [])


def test_a_long_turn_holds_its_lease(operator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    _ordered(operator, nodes=3)
    until = []

    def mark(_: FakeCluster, node: str, reason: str) -> bool:
        until.append(Lease.objects.get(name=isolations.LEASE).expires_at)
        return bool(node and reason)

    monkeypatch.setattr(FakeCluster, "taint_node", mark)
    isolations_reconcile(at=AT)
    assert len(until) == 3
    assert until == sorted(set(until))


def test_what_ended_without_a_mark_is_forgotten(
    operator: User, monkeypatch: pytest.MonkeyPatch, unasked: dict[int, object]
) -> None:
    rows = _ordered(operator, nodes=2)
    monkeypatch.setattr(isolations, "_taintable_cluster", lambda _: None)
    isolation_taints_reconcile(at=AT)
    assert set(unasked) == {row.pk for row in rows}
    isolations_release(uids=[rows[0].uid], reason="done", actor=operator, at=AT)
    isolation_taints_reconcile(at=AT)
    assert set(unasked) == {rows[1].pk}
    isolations_release(uids=[rows[1].uid], reason="done", actor=operator, at=AT)
    isolations_reconcile(at=AT)
    assert unasked == {}


def test_what_an_earlier_burn_in_found_proves_no_later_one() -> None:
    node = Node.objects.get(cluster=ward("far", nodes=1))
    row = Isolation.objects.create(
        node=node, state=IsolationState.TESTING, reason="fans", began_at=AT, burn_ins=1
    )
    passed = BurnInResult(passed=True, message="all well")
    Isolation.objects.filter(pk=row.pk).update(burn_ins=2)
    burn_in_end(row=row, result=passed, at=AT)
    row.refresh_from_db()
    assert row.proved_at is None
    burn_in_end(row=row, result=passed, at=AT)
    row.refresh_from_db()
    assert row.proved_at == AT


def test_a_cluster_that_does_not_answer_is_not_asked_while_faults_are_decided_about(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for question in ("taint_node", "untaint_node", "observe", "launch"):
        monkeypatch.setattr(FakeCluster, question, lambda *_, what=question: asked.append(what))
    row = company.cluster_row
    node = Node.objects.get(cluster=row)
    Isolation.objects.create(
        node=node, state=IsolationState.DRAINING, reason="fans", began_at=company.at
    )
    signals_record(signals=[sign(row, node=node.name, index=0, at=company.at)], at=company.at)
    health_reconcile(at=company.later(timedelta(seconds=2)))
    assert Card.objects.filter(node=node, state=CardState.ISOLATED).exists()
    assert asked == []


def test_what_is_out_of_use_goes_with_its_cluster() -> None:
    gone = ward("gone", nodes=1)
    node = Node.objects.get(cluster=gone)
    isolation = Isolation.objects.create(
        node=node, card=card(gone), reason="double bit", began_at=gone.created_at
    )
    Node.objects.filter(pk=node.pk).update(removed_at=gone.created_at)
    health_reconcile(at=gone.created_at)
    isolation.refresh_from_db()
    assert (isolation.state, isolation.ended_at) == (IsolationState.RETURNED, gone.created_at)
    assert isolation.history.get().reason == "the cluster of this object was removed"
