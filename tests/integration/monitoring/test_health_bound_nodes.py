"""Where a device plug-in chooses, nobody knows which job has which card: nothing is done as if somebody did."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.accounts.models import AuditEntry, User
from apps.fleet.models import Card, Cluster, Node
from apps.jobs.models import Attempt
from apps.monitoring.models import Decision, Isolation
from apps.monitoring.reconcilers.health import health_reconcile
from apps.monitoring.services.faults import signals_record
from apps.monitoring.services.isolations import isolations_request
from apps.quotas.models import Claim
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from tests.integration.company import Company
from tests.integration.founding import company, installation
from tests.integration.monitoring.wards import sign

__all__ = ["company", "installation"]

pytestmark = pytest.mark.django_db

RESTARTS = pytest.mark.parametrize("level", [FaultLevel.RESTART_REQUEST, FaultLevel.RESTART_JOB])


@pytest.fixture(autouse=True)
def bound(company: Company) -> None:
    Cluster.objects.update(binding=Cluster.BindingMode.NODE)
    company.cluster_row.refresh_from_db()


def _claim(attempt: Attempt) -> Claim:
    return Claim.objects.get(uid=attempt.claim_uid)


def _report(company: Company, level: FaultLevel) -> None:
    signal = sign(
        company.cluster_row,
        node=Node.objects.get().name,
        index=0,
        code="94",
        level=level,
        at=company.at,
    )
    signals_record(signals=[signal], at=company.at)


@RESTARTS
def test_the_only_job_of_the_node_is_restarted_whatever_card_was_put_down_for_it(
    level: FaultLevel, company: Company
) -> None:
    _, attempt = company.running()
    (allocation,) = _claim(attempt).allocations.select_related("card")
    other = Card.objects.exclude(pk=allocation.card.pk).get()
    # The fault is told of the card that our books say is free.
    Card.objects.filter(pk=allocation.card.pk).update(index=7)
    Card.objects.filter(pk=other.pk).update(index=0)
    _report(company, level)
    health_reconcile(at=company.at)
    claim = _claim(attempt)
    assert (claim.state, claim.release_reason) == (ClaimState.REVOKING, ReleaseReason.FAULT)
    assert Decision.objects.get().outcome == Decision.Outcome.DONE


@RESTARTS
def test_of_several_jobs_none_is_restarted_and_a_person_is_told_once(
    level: FaultLevel, company: Company
) -> None:
    attempts = [company.running(name=name)[1] for name in ("one", "two")]
    _report(company, level)
    assert [health_reconcile(at=company.later(timedelta(seconds=2))) for _ in range(2)] == [1, 0]
    assert {_claim(attempt).state for attempt in attempts} == {ClaimState.ADMITTED}
    decision = Decision.objects.get()
    assert decision.outcome == Decision.Outcome.HELD_BACK
    assert "the job that uses the card is unknown" in decision.reason
    assert "jobs with cards on the node since the fault began: 2" in decision.reason


def test_a_job_does_not_stop_for_the_card_of_one_that_has_ended_since(company: Company) -> None:
    (_, ended), (_, goes_on) = (company.running(name=name) for name in ("one", "two"))
    _report(company, FaultLevel.RESTART_JOB)
    company.later(timedelta(seconds=1))
    company.finish(ended)
    company.turn_jobs()
    assert _claim(ended).state == ClaimState.RELEASED
    health_reconcile(at=company.at)
    assert _claim(goes_on).state == ClaimState.ADMITTED
    assert Decision.objects.get().outcome == Decision.Outcome.HELD_BACK


def test_a_person_who_takes_out_cards_takes_out_their_node_once_and_is_told(
    company: Company, operator: User
) -> None:
    _, attempt = company.running()
    uids = list(Card.objects.values_list("uid", flat=True))
    (row,) = isolations_request(cards=uids, reason="it smells", actor=operator, at=company.at)
    assert (row.card, row.node, row.actor_name) == (None, Node.objects.get(), "olga")
    assert row.reason.startswith("it smells; the whole node is isolated")
    assert AuditEntry.objects.get(action="isolation.begin").detail == {"reason": row.reason}
    assert set(Card.objects.values_list("state", flat=True)) == {CardState.ISOLATED}
    assert _claim(attempt).state == ClaimState.REVOKING
    assert Node.objects.get().cordoned


def test_what_a_rule_took_out_as_a_node_becomes_the_persons_who_names_its_card(
    company: Company, operator: User
) -> None:
    _report(company, FaultLevel.ISOLATE)
    health_reconcile(at=company.at)
    card = Card.objects.get(index=0)
    isolations_request(cards=[card.uid], reason="it smells", actor=operator, at=company.at)
    row = Isolation.objects.get()
    assert (row.card, row.actor_name) == (None, "olga")
    assert row.reason.startswith("it smells; the whole node is isolated")
