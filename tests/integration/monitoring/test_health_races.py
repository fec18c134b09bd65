"""Isolation and admission at the same moment, and workers that die in the middle of a turn."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from apps.fleet.models import Card
from apps.monitoring.models import Decision, Fault, Isolation, IsolationTransition
from apps.monitoring.reconcilers.health import HEALTH_LEASE, health_reconcile
from apps.monitoring.services.faults import signals_record
from apps.monitoring.services.health_decisions import (
    LeaderLeaseLost,
    decisions_apply,
    suppressed_decisions_store,
)
from apps.quotas.models import Allocation, Claim
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.snapshots import HealthAction, HealthDecision
from controlplane.domain.quotas.claims import ClaimState
from controlplane.outbox.models import OutboxMessage
from controlplane.persistence.leases import hold_leader_lease
from tests.integration.company import Company
from tests.integration.founding import committed_company, company, installation
from tests.integration.monitoring.wards import sign
from tests.integration.mortality import EVERY, Killed, Worker, bury
from tests.integration.quotas.sharing import Sharing
from tests.integration.threads import at_once

__all__ = ["committed_company", "company", "installation"]

ITERATIONS = 6
#: A turn has fewer steps; more would mean that it does not end.
MAX_STEPS = 150


def _wrong(company: Company, *, active: bool = True, index: int = 0) -> None:
    node = Card.objects.select_related("node").get(index=index).node.name
    signal = sign(company.cluster_row, node=node, index=index, at=company.at, active=active)
    signals_record(signals=[signal], at=company.at)


def _start_anew(company: Company) -> None:
    company.later(timedelta(days=2))
    Allocation.objects.filter(released_at=None).update(released_at=company.at)
    Claim.objects.exclude(state=ClaimState.RELEASED).update(state=ClaimState.RELEASED)
    Decision.objects.all().delete()
    IsolationTransition.objects.all().delete()
    Isolation.objects.all().delete()
    Fault.objects.all().delete()
    OutboxMessage.objects.all().delete()
    Card.objects.update(state=CardState.USABLE, state_reason="")


@pytest.mark.django_db(transaction=True)
def test_whoever_comes_first_no_work_goes_on_on_a_card_that_is_isolated(
    committed_company: Company,
) -> None:
    company = committed_company
    sharing = Sharing.of(company)
    for _ in range(ITERATIONS):
        _start_anew(company)
        claim = sharing.claim(sharing.batch, cards=2)
        _wrong(company)
        at_once(company.schedule, lambda: health_reconcile(at=company.at))
        claim.refresh_from_db()
        assert Card.objects.get(index=0).state == CardState.ISOLATED
        assert claim.state in (ClaimState.PENDING, ClaimState.REVOKING)
        held = Allocation.objects.filter(released_at=None, card__state=CardState.ISOLATED)
        assert all(each.claim.state == ClaimState.REVOKING for each in held)
        assert company.schedule() == 0


@pytest.mark.django_db(transaction=True)
def test_two_turns_at_once_isolate_once(committed_company: Company) -> None:
    company = committed_company
    for _ in range(ITERATIONS):
        _start_anew(company)
        _wrong(company)
        outcomes = at_once(*[lambda: health_reconcile(at=company.at)] * 3)
        assert sorted(outcomes) == [0, 0, 1]  # type: ignore[type-var]
        assert Isolation.objects.count() == Decision.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_turn_killed_anywhere_leaves_nothing_half_done_and_the_next_one_does_it(
    committed_company: Company,
) -> None:
    company, worker = committed_company, Worker()
    sharing = Sharing.of(company)
    for dies_at in range(0, MAX_STEPS, EVERY):
        _start_anew(company)
        claim = sharing.claim(sharing.batch, cards=2)
        company.schedule()
        _wrong(company)
        OutboxMessage.objects.all().delete()
        worker.steps, worker.dies_at, worker.last_step = 0, dies_at, ""
        try:
            with worker.working():
                health_reconcile(at=company.at)
        except Killed:
            bury(worker)
            _is_all_or_nothing(claim)
            health_reconcile(at=company.later(timedelta(seconds=40)))
        claim.refresh_from_db()
        assert claim.state == ClaimState.REVOKING, worker.last_step
        assert Card.objects.get(index=0).state == CardState.ISOLATED
        topics = OutboxMessage.objects.values_list("topic", flat=True)
        assert sorted(topics) == ["claim.revoking", "isolation.begun"], worker.last_step
        assert Decision.objects.count() == Isolation.objects.count() == 1
        if not worker.last_step:
            return
    raise AssertionError(f"it is larger than {MAX_STEPS} steps")


@pytest.mark.django_db
def test_a_note_of_a_card_that_is_gone_is_left_out(company: Company) -> None:
    card = Card.objects.select_related("node").get(index=0)
    note = HealthDecision(
        node=card.node.uid,
        card=card.uid,
        fault="",
        action=HealthAction.NOTE,
        reason="fault 92 has level L1",
    )
    with hold_leader_lease(HEALTH_LEASE, ttl=timedelta(seconds=30)) as lease:
        assert lease is not None
        notes = [note, replace(note, card="slice-7")]
        assert suppressed_decisions_store(decided=notes, lease=lease, at=company.at) == 1
    decision = Decision.objects.get()
    assert (decision.node, decision.card, decision.fault) == (card.node, card, None)
    assert (decision.action, decision.outcome, decision.at) == (
        HealthAction.NOTE,
        "done",
        company.at,
    )


def _is_all_or_nothing(claim: Claim) -> None:
    claim.refresh_from_db()
    done = claim.state == ClaimState.REVOKING
    assert (Card.objects.get(index=0).state == CardState.ISOLATED) is done
    assert Isolation.objects.exists() is done
    assert Decision.objects.exists() is done


@pytest.mark.django_db(transaction=True)
def test_a_turn_that_slept_through_its_lease_writes_nothing(committed_company: Company) -> None:
    _wrong(committed_company)
    card, fault = Card.objects.select_related("node").get(index=0), Fault.objects.get()
    decided = HealthDecision(
        node=card.node.uid,
        card=card.uid,
        fault=fault.uid,
        action=HealthAction.ISOLATE_CARD,
        reason="fault 79 has level L6",
    )
    with hold_leader_lease(HEALTH_LEASE, ttl=timedelta(seconds=30)) as stale:
        assert stale is not None
    with hold_leader_lease(HEALTH_LEASE, ttl=timedelta(seconds=30)) as lease:
        assert lease is not None
        with pytest.raises(LeaderLeaseLost):
            decisions_apply(decided=[decided], lease=stale, at=committed_company.at)
        with pytest.raises(LeaderLeaseLost):
            suppressed_decisions_store(
                decided=[replace(decided, action=HealthAction.NOTE)],
                lease=stale,
                at=committed_company.at,
            )
    assert not Decision.objects.exists()
    assert not Isolation.objects.exists()
    assert Card.objects.get(index=0).state == CardState.USABLE
