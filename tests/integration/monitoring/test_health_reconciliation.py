"""One turn of the loop: what is wrong is answered at once, once, and only as far as the policy allows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.fleet.models import Card, Node
from apps.monitoring.models import Decision, Fault, HealthPolicy, Isolation
from apps.monitoring.reconcilers.health import MANUAL_DECISION_REASON, health_reconcile
from apps.monitoring.services.faults import signals_record
from apps.quotas.models import Claim
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.faults import FaultLevel, FaultSignal, SignalOrigin
from controlplane.domain.health.isolations import IsolationState
from controlplane.domain.health.snapshots import HealthAction
from controlplane.domain.jobs.lifecycle import AttemptState, JobState
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from tests.integration.company import Company
from tests.integration.founding import company, installation
from tests.integration.monitoring.wards import NOON, card, seconds_later, sign, ward

__all__ = ["company", "installation"]

pytestmark = pytest.mark.django_db

Outcome = Decision.Outcome


def _report(*signals: FaultSignal) -> None:
    signals_record(signals=signals, at=signals[0].at)


def _states(index: int | None = None) -> list[str]:
    rows = Card.objects.order_by("node__name", "index")
    return [row.state for row in (rows if index is None else rows.filter(index=index))]


def test_a_card_that_must_be_isolated_takes_no_work_after_the_turn() -> None:
    cluster = ward()
    _report(sign(cluster))
    assert health_reconcile(at=seconds_later(1)) == 1
    bad = card(cluster)
    assert (bad.state, bad.state_reason) == (CardState.ISOLATED, "fault 79 has level L6")
    assert _states().count(CardState.ISOLATED) == 1
    decision = Decision.objects.get()
    assert (decision.action, decision.outcome, decision.card) == (
        HealthAction.ISOLATE_CARD,
        Outcome.DONE,
        bad,
    )
    isolation = Isolation.objects.get()
    assert (isolation.card, isolation.fault, isolation.actor_name) == (bad, Fault.objects.get(), "")
    assert isolation.ended_at is None


def test_nothing_is_decided_twice_and_nothing_wrong_is_no_decision() -> None:
    cluster = ward()
    assert health_reconcile(at=NOON) == 0
    _report(sign(cluster))
    health_reconcile(at=seconds_later(1))
    _report(sign(cluster, seconds=5))
    assert health_reconcile(at=seconds_later(6)) == 0
    assert Isolation.objects.count() == 1


def test_a_note_is_written_down_and_changes_nothing() -> None:
    cluster = ward()
    _report(sign(cluster, code="63", level=FaultLevel.NOTE))
    assert health_reconcile(at=seconds_later(1)) == 1
    assert Decision.objects.get().action == HealthAction.NOTE
    assert set(_states()) == {CardState.USABLE}


def test_a_fault_of_the_node_takes_the_whole_node_out() -> None:
    cluster = ward(cards=4)
    _report(sign(cluster, index=None))
    health_reconcile(at=seconds_later(1))
    assert _states() == [CardState.ISOLATED] * 4 + [CardState.USABLE] * 4
    isolation = Isolation.objects.get()
    isolation.node.refresh_from_db()
    assert (isolation.card, isolation.cordoned_node, isolation.node.cordoned) == (None, True, True)


def test_where_a_plug_in_chooses_the_card_one_bad_card_takes_the_node_out() -> None:
    cluster = ward(binding="node")
    _report(sign(cluster))
    health_reconcile(at=seconds_later(1))
    assert Isolation.objects.get().card is None
    assert _states() == [CardState.ISOLATED] * 4 + [CardState.USABLE] * 4


def test_the_guard_lets_a_share_of_the_pool_go_and_a_person_is_told_of_the_rest_once() -> None:
    cluster = ward(nodes=5, cards=4)
    _report(*(sign(cluster, node=f"north-{node}") for node in range(5)))
    health_reconcile(at=seconds_later(1))
    assert _states().count(CardState.ISOLATED) == 2
    assert Decision.objects.filter(outcome=Outcome.DONE).count() == 2
    held = Decision.objects.filter(outcome=Outcome.HELD_BACK)
    assert held.count() == 3
    assert "would make 3 of 20 cards of cpu in north unavailable" in held.latest("-id").reason
    assert health_reconcile(at=seconds_later(3)) == 0
    assert held.count() == 3


def test_what_was_held_back_is_done_when_the_policy_allows_it() -> None:
    cluster = ward(nodes=5, cards=4)
    _report(*(sign(cluster, node=f"north-{node}") for node in range(5)))
    health_reconcile(at=seconds_later(1))
    HealthPolicy.objects.create(settings={"pool_share": 1000}, changed_at=NOON)
    health_reconcile(at=seconds_later(3))
    assert _states().count(CardState.ISOLATED) == 5


def test_rules_that_may_not_act_say_what_they_would_do() -> None:
    cluster = ward()
    HealthPolicy.objects.create(automatic=False, changed_at=NOON)
    _report(sign(cluster))
    health_reconcile(at=seconds_later(1))
    decision = Decision.objects.get()
    assert (decision.outcome, decision.action) == (Outcome.HELD_BACK, HealthAction.ISOLATE_CARD)
    assert decision.reason.endswith(MANUAL_DECISION_REASON)
    assert set(_states()) == {CardState.USABLE}


def test_a_return_that_waits_for_a_person_is_told_once(company: Company) -> None:
    back = Card.objects.select_related("node").earliest("index")
    Card.objects.filter(pk=back.pk).update(state=CardState.ISOLATED)
    HealthPolicy.objects.create(automatic=False, changed_at=company.at)
    Isolation.objects.create(
        node=back.node,
        card=back,
        state=IsolationState.TESTING,
        reason="it was hot",
        began_at=company.at,
        proved_at=company.at,
    )
    assert [health_reconcile(at=company.later(timedelta(seconds=2))) for _ in range(3)] == [1, 0, 0]
    decision = Decision.objects.get()
    assert (decision.action, decision.fault) == (HealthAction.RELEASE, None)
    assert decision.outcome == Outcome.HELD_BACK


def test_many_silent_nodes_are_our_problem_and_isolate_nothing() -> None:
    cluster = ward(nodes=6)
    stale: dict[str, Any] = {"index": None, "origin": SignalOrigin.SILENCE, "code": "node-silent"}
    _report(*(sign(cluster, node=f"north-{node}", **stale) for node in range(3)))
    health_reconcile(at=seconds_later(30))
    assert set(_states()) == {CardState.USABLE}
    assert Decision.objects.get().outcome == Outcome.HELD_BACK


def test_one_silent_node_is_fenced_and_its_work_gets_no_time_to_save(company: Company) -> None:
    _, attempt = company.running()
    for number in range(4):
        Node.objects.create(cluster=company.cluster_row, name=f"neighbour-{number}")
    node = Card.objects.first().node.name  # type: ignore[union-attr]
    stale: dict[str, Any] = {
        "origin": SignalOrigin.SILENCE,
        "code": "node-silent",
        "at": company.at,
    }
    _report(sign(company.cluster_row, node=node, index=None, **stale))
    later = company.later(timedelta(seconds=16))
    health_reconcile(at=later)
    claim = Claim.objects.get(uid=attempt.claim_uid)
    assert (claim.state, claim.release_reason) == (ClaimState.REVOKING, ReleaseReason.FAULT)
    assert claim.revoke_by == later


def test_the_job_on_the_card_saves_and_stops_and_waits_again_in_its_old_place(
    company: Company,
) -> None:
    job, attempt = company.running()
    claim = Claim.objects.get(uid=attempt.claim_uid)
    place = claim.allocations.get().card
    _report(sign(company.cluster_row, node=place.node.name, index=place.index, at=company.at))
    health_reconcile(at=company.at)
    claim.refresh_from_db()
    assert (claim.state, claim.release_reason) == (ClaimState.REVOKING, ReleaseReason.FAULT)
    company.turn_jobs()
    company.turn_jobs()
    attempt.refresh_from_db()
    assert (attempt.state, attempt.stop_reason) == (AttemptState.STOPPED, ReleaseReason.FAULT)
    job.refresh_from_db()
    again = job.attempts.latest("number")
    assert (job.state, again.number, again.continues) == (JobState.WAITING, 2, attempt)
    waiting = Claim.objects.get(uid=again.claim_uid)
    assert waiting.in_line_since == claim.created_at
    company.schedule()
    waiting.refresh_from_db()
    assert waiting.state == ClaimState.ADMITTED
    assert waiting.allocations.get().card != place


def test_a_program_that_died_of_its_card_before_we_heard_of_that_goes_on_elsewhere(
    company: Company,
) -> None:
    job, attempt = company.running()
    place = Claim.objects.get(uid=attempt.claim_uid).allocations.get().card
    company.cluster.write_log(attempt.launch_name, b"CUDA error: uncorrectable ECC error\n")
    company.cluster.finish(attempt.launch_name, exit_code=1)
    company.at = timezone.now()
    company.turn_jobs()
    attempt.refresh_from_db()
    assert (attempt.state, "checking whether the cards have a fault" in attempt.message) == (
        AttemptState.RUNNING,
        True,
    )
    _report(sign(company.cluster_row, node=place.node.name, index=place.index, at=company.at))
    health_reconcile(at=company.at)
    company.turn_jobs()
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == JobState.WAITING
    assert job.attempts.latest("number").continues == attempt


def test_a_program_that_died_without_any_fault_of_its_card_has_failed(company: Company) -> None:
    job, attempt = company.running()
    company.cluster.write_log(attempt.launch_name, b"ValueError: no such column\n")
    company.cluster.finish(attempt.launch_name, exit_code=1)
    company.at = timezone.now() + timedelta(seconds=16)
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == JobState.FAILED


def test_a_restart_stops_the_job_and_leaves_the_card_in_use(company: Company) -> None:
    _, attempt = company.running()
    place = Claim.objects.get(uid=attempt.claim_uid).allocations.get().card
    level = FaultLevel.RESTART_JOB
    location: dict[str, Any] = {"node": place.node.name, "index": place.index, "at": company.at}
    _report(sign(company.cluster_row, code="94", level=level, **location))
    health_reconcile(at=company.at)
    assert Claim.objects.get(uid=attempt.claim_uid).release_reason == ReleaseReason.FAULT
    assert set(_states()) == {CardState.USABLE}
    assert Decision.objects.get().outcome == Outcome.DONE


def test_a_reset_when_idle_lets_the_job_end_by_itself(company: Company) -> None:
    _, attempt = company.running()
    claim = Claim.objects.get(uid=attempt.claim_uid)
    place = claim.allocations.get().card
    location: dict[str, Any] = {"node": place.node.name, "index": place.index, "at": company.at}
    _report(sign(company.cluster_row, level=FaultLevel.RESET_WHEN_IDLE, **location))
    health_reconcile(at=company.at)
    claim.refresh_from_db()
    place.refresh_from_db()
    assert (claim.state, place.state) == (ClaimState.ADMITTED, CardState.NO_NEW_WORK)
    assert Isolation.objects.get().state == IsolationState.DRAINING
    company.finish(attempt)
    company.turn_jobs()
    health_reconcile(at=company.later(timedelta(seconds=2)))
    assert Isolation.objects.get().state == IsolationState.EMPTY


def test_what_becomes_worse_stops_what_was_let_go_on(company: Company) -> None:
    _, attempt = company.running()
    place = Claim.objects.get(uid=attempt.claim_uid).allocations.get().card
    location: dict[str, Any] = {"node": place.node.name, "index": place.index}
    _report(sign(company.cluster_row, level=FaultLevel.RESET_WHEN_IDLE, at=company.at, **location))
    health_reconcile(at=company.at)
    later = company.later(timedelta(seconds=5))
    _report(sign(company.cluster_row, level=FaultLevel.ISOLATE, at=later, **location))
    health_reconcile(at=later)
    place.refresh_from_db()
    assert place.state == CardState.ISOLATED
    assert Claim.objects.get(uid=attempt.claim_uid).state == ClaimState.REVOKING
    assert Isolation.objects.count() == 1


def test_the_queries_of_a_turn_do_not_grow_with_what_is_wrong(
    django_assert_max_num_queries: object,
) -> None:
    cluster = ward(nodes=30, cards=8)
    HealthPolicy.objects.create(
        settings={"pool_share": 1000, "nodes_per_window": 100, "cards_per_node": 100},
        changed_at=NOON,
    )
    _report(*(sign(cluster, node=f"north-{node}") for node in range(30)))
    with django_assert_max_num_queries(60):  # type: ignore[operator]
        health_reconcile(at=seconds_later(1))
    assert _states().count(CardState.ISOLATED) == 30
