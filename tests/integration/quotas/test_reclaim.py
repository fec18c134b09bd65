"""Reclaim of lent cards: with a grace period, for the beneficiary, and without loss of work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from apps.fleet.models import Card
from apps.jobs import services as jobs
from apps.quotas import selectors, services
from apps.quotas.models import Allocation, Claim, Entitlement, Nomination, Queue
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.outbox.models import OutboxMessage
from tests.integration.company import Company
from tests.integration.quotas.cycles import changed_after_plan
from tests.integration.quotas.sharing import Sharing, attempts_of, claim_of, state_of


@pytest.fixture
def sharing(company: Company) -> Sharing:
    return Sharing.of(company)


def test_a_borrower_is_evicted_and_resumes_after_the_owner(sharing: Sharing) -> None:
    company, borrower = sharing.company, sharing.borrowing()
    jobs.attempt_progress_store(
        attempt=attempts_of(borrower)[0],
        points=[{"step": 3, "total_steps": 10, "checkpoint": "step-3"}],
        at=company.later(timedelta(minutes=5)),
    )
    first = claim_of(borrower)
    assert (first.progress, first.checkpointed_at) == (0.3, company.at)
    owner = sharing.asked()

    assert company.schedule() == 0

    first.refresh_from_db()
    assert (first.state, first.release_reason) == (ClaimState.REVOKING, ReleaseReason.PREEMPTED)
    assert first.revoke_by == company.at + SchedulingPolicy().grace
    assert first.revoked_for == claim_of(owner)
    assert first.transitions.get(event="revoke").reason == (
        "queue batch uses more than its guaranteed 0 × cpu; queue owed reclaims its guaranteed quota"
    )
    messages = OutboxMessage.objects.filter(topic="claim.revoking")
    assert [message.payload for message in messages] == [{"claim_uid": first.uid}]
    assert claim_of(owner).explanation == (
        "waiting for 2 × cpu from claims that are being evicted: 1"
    )
    for _ in range(2):
        company.turn_jobs()
    assert company.schedule() == 1

    assert (state_of(owner), state_of(borrower)) == (ClaimState.ADMITTED, ClaimState.PENDING)
    again = claim_of(borrower)
    assert (again.in_line_since, again.preemptible) == (first.created_at, True)
    company.turn_jobs()
    running = attempts_of(owner)[0]
    company.cluster.run(running.launch_name)
    company.finish(running)
    company.turn_jobs()
    assert company.schedule() == 1
    company.turn_jobs()

    before, after = attempts_of(borrower)
    assert after.continues == before
    assert company.cluster.launched(after.launch_name).continues == before.launch_name
    company.cluster.run(after.launch_name)
    company.finish(after)
    company.turn_jobs()
    for job in (owner, borrower):
        job.refresh_from_db()
        assert job.state == "succeeded"
    assert not Allocation.objects.filter(released_at=None).exists()
    assert not Nomination.objects.exists()


def test_cards_freed_for_a_claim_are_nominated_for_it(sharing: Sharing) -> None:
    company = sharing.company
    one, two = sharing.borrowing("one", 1), sharing.borrowing("two", 1)
    owner = sharing.asked()
    company.schedule()
    claims = [claim_of(one), claim_of(two)]
    assert {claim.state for claim in claims} == {ClaimState.REVOKING}

    services.claim_release(uid=claims[0].uid, reason=ReleaseReason.FINISHED, at=company.at)

    nomination = Nomination.objects.get()
    assert (nomination.claim, nomination.until) == (
        claim_of(owner),
        company.at + timedelta(minutes=10),
    )
    urgent = company.submit("urgent", queue=sharing.batch)
    Claim.objects.filter(uid=claim_of(urgent).uid).update(priority=100)
    assert company.schedule() == 0
    services.claim_release(uid=claims[1].uid, reason=ReleaseReason.FINISHED, at=company.at)
    assert company.schedule() == 1
    assert (state_of(owner), state_of(urgent)) == (ClaimState.ADMITTED, ClaimState.PENDING)
    assert not Nomination.objects.exists()


def _freed_for(sharing: Sharing) -> Claim:
    """A pending claim for which one of two cards was freed; the other is still allocated."""
    one = sharing.borrowing("one", 1)
    sharing.borrowing("two", 1)
    owner = sharing.asked()
    sharing.company.schedule()
    uid = claim_of(one).uid
    services.claim_release(uid=uid, reason=ReleaseReason.FINISHED, at=sharing.company.at)
    assert Nomination.objects.count() == 1
    return claim_of(owner)


def test_nominated_cards_go_at_once_to_the_claim_that_would_evict_the_one_they_are_for(
    sharing: Sharing,
) -> None:
    """A claim with higher priority has arrived; the claim would be preempted right after its start."""
    company, borrower = sharing.company, sharing.borrowing()
    owner = sharing.asked()
    company.schedule()
    services.claim_release(uid=claim_of(borrower).uid, reason=ReleaseReason.FINISHED, at=company.at)
    assert Nomination.objects.filter(claim=claim_of(owner)).count() == 2
    urgent = sharing.asked("urgent")
    Claim.objects.filter(uid=claim_of(urgent).uid).update(priority=100)

    assert company.schedule() == 1

    assert (state_of(urgent), state_of(owner)) == (ClaimState.ADMITTED, ClaimState.PENDING)
    assert not Nomination.objects.exists()
    assert company.schedule() == 0
    assert state_of(urgent) == ClaimState.ADMITTED


def test_a_nomination_expires_after_ten_minutes(sharing: Sharing) -> None:
    company = sharing.company
    _freed_for(sharing)

    company.later(timedelta(minutes=10))
    company.schedule()

    assert not Nomination.objects.exists()


def test_a_cancelled_claim_loses_its_nominations(sharing: Sharing) -> None:
    company, beneficiary = sharing.company, _freed_for(sharing)

    services.claim_release(uid=beneficiary.uid, reason=ReleaseReason.CANCELLED, at=company.at)

    assert not Nomination.objects.exists()
    stops = next(view for view in selectors.scheduling_snapshot().running if view.revoking)
    assert stops.revoked_for == ""
    other = company.submit("other", queue=sharing.batch)
    assert company.schedule() == 1
    assert state_of(other) == ClaimState.ADMITTED


def test_an_unusable_card_is_not_nominated(sharing: Sharing) -> None:
    company, borrower = sharing.company, sharing.borrowing()
    sharing.asked()
    company.schedule()
    Card.objects.filter(index=0).update(state=CardState.ISOLATED)

    services.claim_release(uid=claim_of(borrower).uid, reason=ReleaseReason.FINISHED, at=company.at)

    assert list(Nomination.objects.values_list("card__index", flat=True)) == [1]


def test_nominations_for_a_workload_go_to_its_next_claim(sharing: Sharing) -> None:
    company, borrower = sharing.company, sharing.borrowing(cards=1)
    card = Card.objects.exclude(pk=Allocation.objects.get().card_id).get()
    Nomination.objects.create(
        card=card, work_uid=borrower.uid, until=company.at + timedelta(hours=1)
    )
    others = company.submit("others", queue=sharing.batch, cards=1)
    assert company.schedule() == 0
    services.claim_revoke(
        claim=claim_of(borrower),
        reason=ReleaseReason.MOVED,
        grace=timedelta(),
        at=company.at,
        explanation="it goes on elsewhere",
    )
    for _ in range(2):
        company.turn_jobs()
    nomination = Nomination.objects.get()
    assert (nomination.claim, nomination.work_uid) == (claim_of(borrower), "")

    company.schedule()

    assert state_of(borrower) == ClaimState.ADMITTED
    assert not Nomination.objects.exists()
    company.schedule()
    assert state_of(others) == ClaimState.ADMITTED


@pytest.mark.parametrize(
    "change",
    [
        lambda owner: services.claim_release(
            uid=claim_of(owner).uid,
            reason=ReleaseReason.CANCELLED,
            at=claim_of(owner).created_at,
        ),
        lambda owner: Entitlement.objects.update(guaranteed=0),
        lambda owner: Queue.objects.filter(name="owed").update(reclaims=False),
    ],
    ids=["the owner gave up", "the guarantee was lowered", "the queue takes nothing back now"],
)
def test_outdated_evictions_are_skipped(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch, change: Callable[[object], object]
) -> None:
    borrower, owner = sharing.borrowing(), sharing.asked()

    with changed_after_plan(monkeypatch, lambda: change(owner)) as planned:
        sharing.company.schedule()

    assert planned[0].revocations

    assert state_of(borrower) == ClaimState.ADMITTED


def test_a_second_cycle_evicts_no_more_while_victims_checkpoint(sharing: Sharing) -> None:
    company = sharing.company
    sharing.borrowing("one", 1), sharing.borrowing("two", 1)
    sharing.asked(cards=1)
    for _ in range(3):
        company.schedule()
        company.later(timedelta(seconds=10))

    assert Claim.objects.filter(state=ClaimState.REVOKING).count() == 1


def test_a_claim_waits_for_claims_that_are_not_preemptible(sharing: Sharing) -> None:
    borrower = sharing.borrowing()
    Claim.objects.filter(uid=claim_of(borrower).uid).update(preemptible=False)
    sharing.asked()

    sharing.company.schedule()

    assert state_of(borrower) == ClaimState.ADMITTED
