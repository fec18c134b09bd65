"""From its taking out until it has proved itself: what is out of use comes back only by a burn-in, or a person."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import AuditEntry, User
from apps.accounts.selectors import PermissionRefused
from apps.fleet.models import Card, Node
from apps.monitoring.models import Event, Isolation, Notification
from apps.monitoring.reconcilers import burn_ins
from apps.monitoring.reconcilers.health import health_turn
from apps.monitoring.reconcilers.isolations import isolations_turn, marks_keep
from apps.monitoring.services.burn_ins import burn_in_spec
from apps.monitoring.services.faults import faults_acknowledge, signals_record
from apps.monitoring.services.isolations import (
    IsolationRefused,
    burn_ins_ask,
    isolations_order,
    isolations_release,
)
from apps.quotas.models import Allocation, Claim
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import ClaimState
from controlplane.domain.health.isolations import IsolationState
from controlplane.domain.news import NewsKind
from controlplane.domain.permissions import Role
from controlplane.ports import registry
from controlplane.ports.clusters import ClusterUnavailable
from ninefold_runtime import specs
from ninefold_runtime.burnin.specs import BurninSpec
from tests import factories
from tests.integration.company import Company
from tests.integration.founding import company, installation
from tests.integration.monitoring.news import heard
from tests.integration.monitoring.wards import card, sign, ward

__all__ = ["company", "installation"]

pytestmark = pytest.mark.django_db

SETTLED = timedelta(minutes=6)
ENGINE = registry.engine("transformers")


@pytest.fixture(autouse=True)
def engine(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one whose environment the program runs in; jobs run by the plain one."""
    plain = registry.engine("plain")
    monkeypatch.setattr(registry, "engine", {"plain": plain, "transformers": ENGINE}.__getitem__)


@pytest.fixture
def operator() -> User:
    return factories.person("olga", team=factories.team("plant"), role=Role.OPERATOR)


def _turn(company: Company, after: float = 2) -> None:
    at = company.later(timedelta(seconds=after))
    health_turn(at=at)
    isolations_turn(at=at)


def _isolated(company: Company, index: int = 0) -> Isolation:
    """A card that a rule took out, and whose fault is over."""
    row = company.cluster_row
    node = Node.objects.get(cluster=row).name
    told = sign(row, node=node, index=index, at=company.at)
    signals_record(signals=[told], at=company.at)
    _turn(company)
    over = sign(row, node=node, index=index, at=company.at, active=False)
    signals_record(signals=[over], at=company.at)
    return Isolation.objects.get(card__index=index, ended_at=None)


def _testing(company: Company) -> Isolation:
    row = _isolated(company)
    _turn(company)
    company.later(SETTLED)
    _turn(company)
    row.refresh_from_db()
    assert row.state == IsolationState.TESTING
    return row


def _result(passed: bool) -> bytes:
    verdict = "passed" if passed else "failed"
    tests = [{"test": "memory", "card": 0, "verdict": verdict, "words": "bit 3 of word 77 flipped"}]
    return f"burn-in\nRESULT {json.dumps({'passed': passed, 'tests': tests})}\n".encode()


def _end(company: Company, row: Isolation, *, passed: bool) -> None:
    name = f"burnin-{row.uid}-{row.burn_ins}"
    company.cluster.run(name)
    company.cluster.write_log(name, _result(passed))
    company.cluster.finish(name, exit_code=0 if passed else 9)


def _card(index: int = 0) -> Card:
    return Card.objects.get(index=index)


def test_it_waits_until_what_was_wrong_has_been_away_for_a_while(company: Company) -> None:
    row = _isolated(company)
    _turn(company)
    row.refresh_from_db()
    assert (row.state, row.burn_ins) == (IsolationState.EMPTY, 0)
    _turn(company, after=60)
    row.refresh_from_db()
    assert row.state == IsolationState.EMPTY


def test_what_runs_on_other_cards_does_not_keep_it_from_being_empty(company: Company) -> None:
    company.running()
    held = Allocation.objects.filter(released_at=None).values("card")
    row = _isolated(company, index=Card.objects.exclude(pk__in=held).get().index)
    _turn(company)
    row.refresh_from_db()
    assert row.state == IsolationState.EMPTY


def test_a_burn_in_runs_on_exactly_that_card(company: Company) -> None:
    row = _testing(company)
    launch = company.cluster.launched(f"burnin-{row.uid}-1")
    (role,) = launch.roles
    (placement,) = role.placements
    assert (placement.node, placement.cards) == (row.node.name, (0,))
    assert role.argv[1:3] == ("-m", "ninefold_runtime.burnin")
    spec = json.loads(launch.files["burnin.json"])
    assert (spec["kind"], spec["device"], spec["cards"]) == ("burnin", "cpu", 1)
    assert launch.engine == ENGINE.environment()


@pytest.mark.parametrize("chip", ["cpu", "nvidia-h800", "ascend-910b3"])
def test_what_a_burn_in_is_asked_is_what_the_program_reads(chip: str, tmp_path: Path) -> None:
    found = registry.chip_called(chip)
    assert found is not None
    asked = tmp_path / "burnin.json"
    asked.write_text(json.dumps(burn_in_spec(found, cards=8)))
    spec = specs.load(asked, BurninSpec)
    spec.check()
    assert (spec.device, spec.cards) == (found.torch_device, 8)
    assert (spec.matrix.expected_tflops is None) is (chip == "cpu")


def test_it_comes_back_when_the_burn_in_has_passed(company: Company) -> None:
    row = _testing(company)
    _end(company, row, passed=True)
    _turn(company)
    row.refresh_from_db()
    assert row.proved_at is not None
    assert _card().state == CardState.ISOLATED
    _turn(company)
    row.refresh_from_db()
    assert (row.state, _card().state) == (IsolationState.RETURNED, CardState.USABLE)
    assert row.evidence["result"]["passed"] is True
    _turn(company)
    assert company.cluster.names() == frozenset()


def test_it_stays_out_with_the_evidence_when_the_burn_in_fails(company: Company) -> None:
    row = _testing(company)
    _end(company, row, passed=False)
    _turn(company)
    _turn(company, after=600)
    row.refresh_from_db()
    assert (row.state, row.burn_ins, row.proved_at) == (IsolationState.EMPTY, 1, None)
    assert row.evidence["words"] == "memory of card 0 failed: bit 3 of word 77 flipped"
    assert _card().state == CardState.ISOLATED


def test_a_program_that_dies_without_a_word_has_not_passed(company: Company) -> None:
    row = _testing(company)
    name = f"burnin-{row.uid}-1"
    company.cluster.run(name)
    company.cluster.finish(name)
    _turn(company)
    row.refresh_from_db()
    assert (row.state, row.evidence["passed"]) == (IsolationState.EMPTY, False)
    assert "without a result" in row.evidence["words"]


def test_an_operator_can_have_it_tested_again(company: Company, operator: User) -> None:
    row = _testing(company)
    _end(company, row, passed=False)
    _turn(company)
    assert burn_ins_ask(uids=[row.uid], actor=operator, at=company.at) == 1
    _turn(company)
    row.refresh_from_db()
    assert (row.state, row.burn_ins) == (IsolationState.TESTING, 2)
    _end(company, row, passed=True)
    _turn(company)
    _turn(company)
    row.refresh_from_db()
    assert row.state == IsolationState.RETURNED


def test_what_goes_wrong_after_the_burn_in_keeps_it_out(company: Company) -> None:
    row = _testing(company)
    _end(company, row, passed=True)
    _turn(company)
    node = row.node.name
    told = sign(company.cluster_row, node=node, index=0, code="95", at=company.at)
    signals_record(signals=[told], at=company.at)
    _turn(company)
    _turn(company)
    assert _card().state == CardState.ISOLATED
    row.refresh_from_db()
    assert row.ended_at is None


def test_what_went_wrong_after_the_burn_in_is_not_forgotten_with_time(company: Company) -> None:
    row = _testing(company)
    _end(company, row, passed=True)
    _turn(company)
    for active in (True, False):
        company.later(timedelta(seconds=1))
        told = sign(
            company.cluster_row,
            node=row.node.name,
            index=0,
            at=company.at,
            active=active,
            code="95",
        )
        signals_record(signals=[told], at=company.at)
        _turn(company)
    _turn(company, after=25 * 3600)
    row.refresh_from_db()
    assert (row.state, row.proved_at) == (IsolationState.EMPTY, None)
    assert _card().state == CardState.ISOLATED


def test_what_passed_and_is_kept_out_can_be_tested_again(company: Company, operator: User) -> None:
    row = _testing(company)
    _end(company, row, passed=True)
    _turn(company)
    told = sign(company.cluster_row, node=row.node.name, index=0, code="95", at=company.at)
    signals_record(signals=[told], at=company.at)
    _turn(company)
    assert burn_ins_ask(uids=[row.uid], actor=operator, at=company.at) == 1
    _turn(company)
    row.refresh_from_db()
    assert (row.state, row.burn_ins, row.proved_at) == (IsolationState.TESTING, 2, None)


def test_where_no_program_runs_a_person_is_told_why_and_decides(operator: User) -> None:
    cluster = ward("pretend", kind="simulated")
    given = isolations_order(
        cards=[card(cluster).uid], reason="smells", actor=operator, at=cluster.created_at
    )
    burn_ins_ask(uids=[given[0].uid], actor=operator, at=cluster.created_at)
    health_turn(at=cluster.created_at)
    isolations_turn(at=cluster.created_at)
    row = Isolation.objects.get()
    assert row.state == IsolationState.EMPTY
    assert row.evidence["impossible"] == "a cluster of kind simulated runs no program"
    heard("isolation.unproved")
    event = Event.objects.get(kind=NewsKind.CARD_UNPROVED)
    assert event.payload["reason"] == row.evidence["impossible"]


def test_a_person_takes_out_cards_and_nodes_with_a_reason_that_stays(
    company: Company, operator: User
) -> None:
    _, attempt = company.running()
    node = Node.objects.get()
    (row,) = isolations_order(nodes=[node.uid], reason="new fans", actor=operator, at=company.at)
    assert (row.actor_name, row.reason, row.card) == ("olga", "new fans", None)
    assert set(Card.objects.values_list("state", flat=True)) == {CardState.ISOLATED}
    assert Claim.objects.get(uid=attempt.claim_uid).state == ClaimState.REVOKING
    entry = AuditEntry.objects.get(action="isolation.begin")
    assert (entry.actor, entry.object_uid, entry.detail) == (
        operator,
        row.uid,
        {"reason": "new fans"},
    )
    assert isolations_order(nodes=[node.uid], reason="again", actor=operator, at=company.at) == []


def test_only_a_person_gives_back_what_a_person_took_out(company: Company, operator: User) -> None:
    (row,) = isolations_order(cards=[_card().uid], reason="look", actor=operator, at=company.at)
    _turn(company)
    burn_ins_ask(uids=[row.uid], actor=operator, at=company.at)
    _turn(company)
    row.refresh_from_db()
    _end(company, row, passed=True)
    _turn(company)
    _turn(company)
    assert _card().state == CardState.ISOLATED
    assert isolations_release(uids=[row.uid], reason="it is fine", actor=operator, at=company.at)
    assert _card().state == CardState.USABLE
    last = row.history.latest("id")
    assert (last.actor, last.reason) == ("olga", "it is fine")
    assert AuditEntry.objects.filter(action="isolation.release", actor=operator).count() == 1


def test_a_card_comes_back_only_when_nothing_else_keeps_it_out(
    company: Company, operator: User
) -> None:
    node = Node.objects.get()
    (one,) = isolations_order(cards=[_card().uid], reason="look", actor=operator, at=company.at)
    (all_of_it,) = isolations_order(nodes=[node.uid], reason="fans", actor=operator, at=company.at)
    isolations_release(uids=[one.uid], reason="done", actor=operator, at=company.at)
    assert _card().state == CardState.ISOLATED
    isolations_release(uids=[all_of_it.uid], reason="done", actor=operator, at=company.at)
    assert set(Card.objects.values_list("state", flat=True)) == {CardState.USABLE}
    node.refresh_from_db()
    assert not node.cordoned


@pytest.mark.parametrize("reason", ["", "  "])
def test_nobody_isolates_or_releases_without_a_reason(
    reason: str, company: Company, operator: User
) -> None:
    with pytest.raises(IsolationRefused, match="say why"):
        isolations_order(cards=[_card().uid], reason=reason, actor=operator, at=company.at)
    with pytest.raises(IsolationRefused, match="say why"):
        isolations_release(uids=[], reason=reason, actor=operator, at=company.at)


def test_only_operators_act_on_the_fleet(company: Company) -> None:
    terms: dict[str, Any] = {"actor": company.engineer, "at": company.at}
    with pytest.raises(PermissionRefused):
        isolations_order(cards=[_card().uid], reason="no", **terms)
    with pytest.raises(PermissionRefused):
        isolations_release(uids=[], reason="no", **terms)
    with pytest.raises(PermissionRefused):
        burn_ins_ask(uids=[], **terms)
    with pytest.raises(PermissionRefused):
        faults_acknowledge(uids=[], note="", **terms)


def test_the_node_bears_a_mark_on_its_cluster_while_it_is_out(
    company: Company, operator: User
) -> None:
    node = Node.objects.get()
    (row,) = isolations_order(nodes=[node.uid], reason="fans", actor=operator, at=company.at)
    company.cluster.lose_contact()
    _turn(company)
    assert company.cluster.marks == {}
    company.cluster.regain_contact()
    _turn(company, after=31)
    assert company.cluster.marks == {node.name: "fans"}
    isolations_release(uids=[row.uid], reason="done", actor=operator, at=company.at)
    _turn(company)
    assert company.cluster.marks == {}


def test_a_cluster_that_is_away_is_waited_for_once_a_turn(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, asked = ward("far", kind="fake", nodes=4), []

    def mark(_: FakeCluster, node: str, reason: str) -> bool:
        asked.append(node)
        raise ClusterUnavailable(f"no answer in 10 seconds, so {reason} is not written down")

    monkeypatch.setattr(FakeCluster, "mark", mark)
    nodes = [node.uid for node in Node.objects.filter(cluster=cluster)]
    isolations_order(nodes=nodes, reason="fans", actor=operator, at=cluster.created_at)
    marks_keep(at=cluster.created_at)
    assert len(asked) == 1


def test_burn_ins_that_wait_for_a_cluster_that_is_away_hold_up_no_other(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = ward("far", kind="kubernetes", nodes=3)
    for node in Node.objects.filter(cluster=far):
        Isolation.objects.create(
            node=node, state=IsolationState.TESTING, reason="fans", began_at=company.at, burn_ins=1
        )
    monkeypatch.setattr(burn_ins, "BATCH", 2)
    row = _testing(company)
    _end(company, row, passed=True)
    _turn(company)
    row.refresh_from_db()
    assert row.proved_at is not None


def test_operators_and_their_webhooks_are_told_with_the_evidence(
    company: Company, operator: User
) -> None:
    row = _isolated(company)
    heard("isolation.begun")
    event = Event.objects.get()
    assert (event.kind, event.subject_uid) == (NewsKind.CARD_ISOLATED, _card().uid)
    evidence = event.payload["evidence"]
    assert (evidence["card"], evidence["fault"]["code"], evidence["isolation"]) == (
        0,
        "79",
        row.uid,
    )
    assert evidence["fault"]["cause"]
    assert [one.recipient for one in Notification.objects.filter(event=event)] == [operator]
