"""What a rule took out of use comes back by a burn-in that it passes, and else stays out with the evidence."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from apps.accounts.models import User
from apps.fleet.models import Card, Node
from apps.monitoring.models import Isolation
from apps.monitoring.reconcilers import isolations
from apps.monitoring.reconcilers.health import health_reconcile
from apps.monitoring.reconcilers.isolations import isolations_reconcile
from apps.monitoring.services.burn_ins import burn_in_spec
from apps.monitoring.services.faults import signals_record
from apps.monitoring.services.isolations import burn_ins_request, isolations_request
from apps.notifications.models import Event
from apps.quotas.models import Allocation
from controlplane.domain.alerts.notifications import NotificationKind
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.isolations import IsolationState
from controlplane.ports import adapter_registry
from ninefold_runtime import specs
from ninefold_runtime.burnin.specs import BurninSpec
from tests.integration.company import Company
from tests.integration.founding import company, installation
from tests.integration.monitoring.burn_in_runs import (
    ENGINE,
    burned_in,
    burning_in,
    card_at,
    engine,
    isolated,
    turn,
)
from tests.integration.monitoring.notifications import deliver_messages
from tests.integration.monitoring.wards import card, sign, ward

__all__ = ["company", "engine", "installation"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("engine")]


def test_it_waits_until_what_was_wrong_has_been_away_for_a_while(company: Company) -> None:
    row = isolated(company)
    turn(company)
    row.refresh_from_db()
    assert (row.state, row.burn_ins) == (IsolationState.EMPTY, 0)
    turn(company, after=60)
    row.refresh_from_db()
    assert row.state == IsolationState.EMPTY


def test_what_runs_on_other_cards_does_not_keep_it_from_being_empty(company: Company) -> None:
    company.running()
    held = Allocation.objects.filter(released_at=None).values("card")
    row = isolated(company, index=Card.objects.exclude(pk__in=held).get().index)
    turn(company)
    row.refresh_from_db()
    assert row.state == IsolationState.EMPTY


def test_a_burn_in_runs_on_exactly_that_card(company: Company) -> None:
    row = burning_in(company)
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
    found = adapter_registry.chip_by_name(chip)
    assert found is not None
    asked = tmp_path / "burnin.json"
    asked.write_text(json.dumps(burn_in_spec(found, cards=8)))
    spec = specs.load_spec(asked, BurninSpec)
    spec.check()
    assert (spec.device, spec.cards) == (found.torch_device, 8)
    assert (spec.matrix.expected_tflops is None) is (chip == "cpu")


def test_it_comes_back_when_the_burn_in_has_passed(company: Company) -> None:
    row = burning_in(company)
    burned_in(company, row, passed=True)
    turn(company)
    row.refresh_from_db()
    assert row.proved_at is not None
    assert card_at().state == CardState.ISOLATED
    turn(company)
    row.refresh_from_db()
    assert (row.state, card_at().state) == (IsolationState.RETURNED, CardState.USABLE)
    assert row.evidence["result"]["passed"] is True
    turn(company)
    assert company.cluster.names() == frozenset()


def test_it_stays_out_with_the_evidence_when_the_burn_in_fails(company: Company) -> None:
    row = burning_in(company)
    burned_in(company, row, passed=False)
    turn(company)
    turn(company, after=600)
    row.refresh_from_db()
    assert (row.state, row.burn_ins, row.proved_at) == (IsolationState.EMPTY, 1, None)
    assert row.evidence["words"] == "test memory of card 0 failed: bit 3 of word 77 flipped"
    assert card_at().state == CardState.ISOLATED


def test_a_program_that_dies_without_a_word_has_not_passed(company: Company) -> None:
    row = burning_in(company)
    name = f"burnin-{row.uid}-1"
    company.cluster.run(name)
    company.cluster.finish(name)
    turn(company)
    row.refresh_from_db()
    assert (row.state, row.evidence["passed"]) == (IsolationState.EMPTY, False)
    assert "without a result" in row.evidence["words"]


def test_an_operator_can_have_it_tested_again(company: Company, operator: User) -> None:
    row = burning_in(company)
    burned_in(company, row, passed=False)
    turn(company)
    assert burn_ins_request(uids=[row.uid], actor=operator, at=company.at) == 1
    turn(company)
    row.refresh_from_db()
    assert (row.state, row.burn_ins) == (IsolationState.TESTING, 2)
    burned_in(company, row, passed=True)
    turn(company)
    turn(company)
    row.refresh_from_db()
    assert row.state == IsolationState.RETURNED


def test_what_goes_wrong_after_the_burn_in_keeps_it_out(company: Company) -> None:
    row = burning_in(company)
    burned_in(company, row, passed=True)
    turn(company)
    node = row.node.name
    signal = sign(company.cluster_row, node=node, index=0, code="95", at=company.at)
    signals_record(signals=[signal], at=company.at)
    turn(company)
    turn(company)
    assert card_at().state == CardState.ISOLATED
    row.refresh_from_db()
    assert row.ended_at is None


def test_what_went_wrong_after_the_burn_in_is_not_forgotten_with_time(company: Company) -> None:
    row = burning_in(company)
    burned_in(company, row, passed=True)
    turn(company)
    for active in (True, False):
        company.later(timedelta(seconds=1))
        signal = sign(
            company.cluster_row,
            node=row.node.name,
            index=0,
            at=company.at,
            active=active,
            code="95",
        )
        signals_record(signals=[signal], at=company.at)
        turn(company)
    turn(company, after=25 * 3600)
    row.refresh_from_db()
    assert (row.state, row.proved_at) == (IsolationState.EMPTY, None)
    assert card_at().state == CardState.ISOLATED


def test_what_passed_and_is_kept_out_can_be_tested_again(company: Company, operator: User) -> None:
    row = burning_in(company)
    burned_in(company, row, passed=True)
    turn(company)
    signal = sign(company.cluster_row, node=row.node.name, index=0, code="95", at=company.at)
    signals_record(signals=[signal], at=company.at)
    turn(company)
    assert burn_ins_request(uids=[row.uid], actor=operator, at=company.at) == 1
    turn(company)
    row.refresh_from_db()
    assert (row.state, row.burn_ins, row.proved_at) == (IsolationState.TESTING, 2, None)


def test_where_no_program_runs_a_person_is_told_why_and_decides(operator: User) -> None:
    cluster = ward("pretend", kind="simulated")
    given = isolations_request(
        cards=[card(cluster).uid], reason="smells", actor=operator, at=cluster.created_at
    )
    burn_ins_request(uids=[given[0].uid], actor=operator, at=cluster.created_at)
    health_reconcile(at=cluster.created_at)
    isolations_reconcile(at=cluster.created_at)
    row = Isolation.objects.get()
    assert row.state == IsolationState.EMPTY
    assert row.evidence["impossible"] == "a cluster of kind simulated does not run workloads"
    deliver_messages("isolation.unproved")
    event = Event.objects.get(kind=NotificationKind.CARD_UNPROVED)
    assert event.payload["reason"] == row.evidence["impossible"]


def test_burn_ins_that_wait_for_a_cluster_that_is_away_hold_up_no_other(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = ward("far", kind="kubernetes", nodes=3)
    for node in Node.objects.filter(cluster=far):
        Isolation.objects.create(
            node=node, state=IsolationState.TESTING, reason="fans", began_at=company.at, burn_ins=1
        )
    monkeypatch.setattr(isolations, "BATCH", 2)
    row = burning_in(company)
    burned_in(company, row, passed=True)
    turn(company)
    row.refresh_from_db()
    assert row.proved_at is not None
