"""People take cards and nodes out of use and give them back, and whom it concerns is told."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.models import AuditEntry, User
from apps.accounts.selectors import PermissionRefused
from apps.fleet.models import Card, Node
from apps.monitoring.reconcilers.isolations import isolation_taints_reconcile
from apps.monitoring.services.burn_ins import BurnInImpossible, burn_in_launch
from apps.monitoring.services.faults import faults_acknowledge
from apps.monitoring.services.isolations import (
    IsolationRefused,
    burn_ins_request,
    isolations_release,
    isolations_request,
)
from apps.notifications.models import Event, Notification
from apps.quotas.models import Claim
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.alerts.notifications import NotificationKind
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.quotas.claims import ClaimState
from controlplane.ports.clusters import ClusterUnavailable
from tests.integration.company import Company
from tests.integration.founding import company, installation
from tests.integration.monitoring.burn_in_runs import burned_in, card_at, engine, isolated, turn
from tests.integration.monitoring.notifications import deliver_messages
from tests.integration.monitoring.wards import ward

__all__ = ["company", "engine", "installation"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("engine")]


def test_a_person_takes_out_cards_and_nodes_with_a_reason_that_stays(
    company: Company, operator: User
) -> None:
    _, attempt = company.running()
    node = Node.objects.get()
    (row,) = isolations_request(nodes=[node.uid], reason="new fans", actor=operator, at=company.at)
    assert (row.actor_name, row.reason, row.card) == ("olga", "new fans", None)
    assert set(Card.objects.values_list("state", flat=True)) == {CardState.ISOLATED}
    assert Claim.objects.get(uid=attempt.claim_uid).state == ClaimState.REVOKING
    entry = AuditEntry.objects.get(action="isolation.begin")
    assert (entry.actor, entry.object_uid, entry.detail) == (
        operator,
        row.uid,
        {"reason": "new fans"},
    )
    assert isolations_request(nodes=[node.uid], reason="again", actor=operator, at=company.at) == []


def test_a_divided_card_takes_its_slices_along_and_brings_them_back(
    company: Company, operator: User
) -> None:
    parent = card_at()
    slices = [
        Card.objects.create(node=parent.node, parent=parent, index=20 + step, chip="part-of-cpu")
        for step in range(2)
    ]
    others = Card.objects.exclude(pk__in=[parent.pk, *(each.pk for each in slices)])
    assert others

    (row,) = isolations_request(cards=[parent.uid], reason="look", actor=operator, at=company.at)
    assert set(Card.objects.filter(parent=parent).values_list("state", flat=True)) == {"isolated"}
    assert set(others.values_list("state", flat=True)) == {"usable"}

    # No program can test a card that is divided: a person has to give it back.
    with pytest.raises(BurnInImpossible, match="partitioned into slices"):
        burn_in_launch(name="b", node=parent.node, cards=list(parent.node.cards.all()))
    isolations_release(uids=[row.uid], reason="it is fine", actor=operator, at=company.at)
    assert set(Card.objects.filter(parent=parent).values_list("state", flat=True)) == {"usable"}


def test_only_a_person_gives_back_what_a_person_took_out(company: Company, operator: User) -> None:
    (row,) = isolations_request(cards=[card_at().uid], reason="look", actor=operator, at=company.at)
    turn(company)
    burn_ins_request(uids=[row.uid], actor=operator, at=company.at)
    turn(company)
    row.refresh_from_db()
    burned_in(company, row, passed=True)
    turn(company)
    turn(company)
    assert card_at().state == CardState.ISOLATED
    assert isolations_release(uids=[row.uid], reason="it is fine", actor=operator, at=company.at)
    assert card_at().state == CardState.USABLE
    last = row.history.latest("id")
    assert (last.actor, last.reason) == ("olga", "it is fine")
    assert AuditEntry.objects.filter(action="isolation.release", actor=operator).count() == 1


def test_a_card_comes_back_only_when_nothing_else_keeps_it_out(
    company: Company, operator: User
) -> None:
    node = Node.objects.get()
    (one,) = isolations_request(cards=[card_at().uid], reason="look", actor=operator, at=company.at)
    (all_of_it,) = isolations_request(
        nodes=[node.uid], reason="fans", actor=operator, at=company.at
    )
    isolations_release(uids=[one.uid], reason="done", actor=operator, at=company.at)
    assert card_at().state == CardState.ISOLATED
    isolations_release(uids=[all_of_it.uid], reason="done", actor=operator, at=company.at)
    assert set(Card.objects.values_list("state", flat=True)) == {CardState.USABLE}
    node.refresh_from_db()
    assert not node.cordoned


@pytest.mark.parametrize("reason", ["", "  "])
def test_nobody_isolates_or_releases_without_a_reason(
    reason: str, company: Company, operator: User
) -> None:
    with pytest.raises(IsolationRefused, match="enter a reason"):
        isolations_request(cards=[card_at().uid], reason=reason, actor=operator, at=company.at)
    with pytest.raises(IsolationRefused, match="enter a reason"):
        isolations_release(uids=[], reason=reason, actor=operator, at=company.at)


def test_only_operators_act_on_the_fleet(company: Company) -> None:
    terms: dict[str, Any] = {"actor": company.engineer, "at": company.at}
    with pytest.raises(PermissionRefused):
        isolations_request(cards=[card_at().uid], reason="no", **terms)
    with pytest.raises(PermissionRefused):
        isolations_release(uids=[], reason="no", **terms)
    with pytest.raises(PermissionRefused):
        burn_ins_request(uids=[], **terms)
    with pytest.raises(PermissionRefused):
        faults_acknowledge(uids=[], note="", **terms)


def test_the_node_bears_a_mark_on_its_cluster_while_it_is_out(
    company: Company, operator: User
) -> None:
    node = Node.objects.get()
    (row,) = isolations_request(nodes=[node.uid], reason="fans", actor=operator, at=company.at)
    company.cluster.lose_contact()
    turn(company)
    assert company.cluster.taints == {}
    company.cluster.regain_contact()
    turn(company, after=31)
    assert company.cluster.taints == {node.name: "fans"}
    isolations_release(uids=[row.uid], reason="done", actor=operator, at=company.at)
    turn(company)
    assert company.cluster.taints == {}


def test_a_cluster_that_is_away_is_waited_for_once_a_turn(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, asked = ward("far", kind="fake", nodes=4), []

    def mark(_: FakeCluster, node: str, reason: str) -> bool:
        asked.append(node)
        raise ClusterUnavailable(f"no answer in 10 seconds, so {reason} is not written down")

    monkeypatch.setattr(FakeCluster, "taint_node", mark)
    nodes = [node.uid for node in Node.objects.filter(cluster=cluster)]
    isolations_request(nodes=nodes, reason="fans", actor=operator, at=cluster.created_at)
    isolation_taints_reconcile(at=cluster.created_at)
    assert len(asked) == 1


def test_operators_and_their_webhooks_are_told_with_the_evidence(
    company: Company, operator: User
) -> None:
    row = isolated(company)
    deliver_messages("isolation.begun")
    event = Event.objects.get()
    assert (event.kind, event.subject_uid) == (NotificationKind.CARD_ISOLATED, card_at().uid)
    evidence = event.payload["evidence"]
    assert (evidence["card"], evidence["fault"]["code"], evidence["isolation"]) == (
        0,
        "79",
        row.uid,
    )
    assert evidence["fault"]["cause"]
    assert [one.recipient for one in Notification.objects.filter(event=event)] == [operator]
