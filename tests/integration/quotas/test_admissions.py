"""Admission: validation of a plan at commit, and which queues accept claims."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from apps.accounts.models import User
from apps.jobs import services as jobs
from apps.jobs.services import SpecRefused
from apps.quotas import selectors, services
from apps.quotas.models import Allocation, Claim, Queue
from apps.quotas.reconcilers import scheduling_cycles
from apps.quotas.selectors.snapshots import nominated_cards
from apps.quotas.services import admissions
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.domain.quotas.queues import QueueState
from controlplane.domain.scheduling.plans import ClaimPlacement, SchedulingPolicy
from controlplane.domain.scheduling.snapshots import ReplicaPlacement
from tests.integration.company import Company, entitle
from tests.integration.quotas.cycles import changed_after_plan
from tests.integration.quotas.sharing import Sharing, claim_of


@pytest.fixture
def sharing(company: Company) -> Sharing:
    """Both queues are below one with all of the company's cards."""
    sharing = Sharing.of(company, guaranteed=0)
    top = Queue.objects.create(name="top")
    Queue.objects.filter(name__in=("owed", "batch")).update(parent=top)
    return sharing


def top() -> Queue:
    return Queue.objects.get(name="top")


@pytest.mark.parametrize(
    "change",
    [
        lambda: entitle(top(), cap=1),
        lambda: entitle(top(), chip="", cap=1),
        lambda: Queue.objects.filter(name="top").update(max_running_per_user=1),
    ],
    ids=["a cap above", "a cap in total", "a person's limit above"],
)
def test_one_of_two_conflicting_placements_is_admitted(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]
) -> None:
    user = sharing.company.engineer
    claims = [sharing.claim(queue, user=user) for queue in (sharing.lender, sharing.batch)]

    with changed_after_plan(monkeypatch, change):
        assert sharing.company.schedule() == 1

    assert Allocation.objects.filter(released_at=None).count() == 1
    states = sorted(Claim.objects.get(pk=claim.pk).state for claim in claims)
    assert states == [ClaimState.ADMITTED, ClaimState.PENDING]


@pytest.mark.parametrize(
    "change",
    [
        lambda: Queue.objects.filter(name="top").update(state=QueueState.CLOSED),
        lambda: Queue.objects.filter(name="owed").update(
            parent=Queue.objects.create(name="shut", state=QueueState.CLOSED)
        ),
    ],
    ids=["the queue above was closed", "it was moved below a closed one"],
)
def test_a_closed_ancestor_queue_is_checked_at_admission(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]
) -> None:
    sharing.claim(sharing.lender)
    with changed_after_plan(monkeypatch, change):
        assert sharing.company.schedule() == 0
    assert not Allocation.objects.exists()


def test_the_per_user_limit_of_a_queue_is_enforced(sharing: Sharing) -> None:
    company = sharing.company
    Queue.objects.filter(name="top").update(max_running_per_user=1)
    mine = [
        sharing.claim(queue, user=company.engineer) for queue in (sharing.lender, sharing.batch)
    ]

    assert company.schedule() == 1

    waiting = Claim.objects.get(state=ClaimState.PENDING)
    assert waiting.explanation == "mei has 1 of at most 1 admitted claims in queue top"
    assert waiting.explanation_numbers == {"held": 1, "limit": 1}
    sharing.claim(sharing.batch, user=company.stranger)
    assert company.schedule() == 1
    (running,) = {claim.pk for claim in mine} - {waiting.pk}
    uid = Claim.objects.get(pk=running).uid
    services.claim_release(uid=uid, reason=ReleaseReason.FINISHED, at=company.at)
    assert company.schedule() == 1


def test_a_job_counts_towards_the_limit_of_its_submitter(sharing: Sharing) -> None:
    job = sharing.borrowing(cards=1)
    claim = claim_of(job)
    assert (claim.user, claim.work_kind, claim.work_uid, claim.work_name) == (
        User.objects.get(username="mei"),
        "job",
        job.uid,
        "borrower",
    )
    (running,) = selectors.scheduling_snapshot().running
    assert (running.user, running.preemptible) == ("mei", True)


@pytest.mark.parametrize("state", [QueueState.DRAINING, QueueState.CLOSED])
@pytest.mark.parametrize("where", ["owed", "top"])
def test_a_draining_or_closed_queue_rejects_new_claims(
    sharing: Sharing, state: QueueState, where: str
) -> None:
    Queue.objects.filter(name=where).update(state=state)
    says = {QueueState.DRAINING: "is draining", QueueState.CLOSED: "is closed"}[state]
    with pytest.raises(SpecRefused, match=f"queue {where} {says} and accepts no new claims"):
        sharing.asked()
    with pytest.raises(services.QueueNotAcceptingClaims, match=f"queue {where} {says}"):
        sharing.claim(sharing.lender)
    assert not Claim.objects.exists()


def test_only_leaf_queues_accept_claims(sharing: Sharing) -> None:
    with pytest.raises(services.QueueNotAcceptingClaims, match="queue top has child queues"):
        sharing.claim(top())


def test_a_draining_queue_admits_pending_and_evicted_claims(sharing: Sharing) -> None:
    company = sharing.company
    job, pending = sharing.borrowing(cards=1), sharing.claim(sharing.batch)
    Queue.objects.filter(name="batch").update(state=QueueState.DRAINING)

    assert company.schedule() == 1

    pending.refresh_from_db()
    assert pending.state == ClaimState.ADMITTED
    services.claim_revoke(
        claim=claim_of(job),
        reason=ReleaseReason.FAULT,
        grace=SchedulingPolicy().grace,
        at=company.at,
        explanation="the node is isolated",
    )
    for _ in range(2):
        company.turn_jobs()
    assert claim_of(job).state == ClaimState.PENDING
    assert company.schedule() == 1


def test_a_finished_job_is_not_retried_in_a_draining_queue(
    sharing: Sharing,
) -> None:
    company, job = sharing.company, sharing.asked()
    jobs.job_cancel(job=job, actor=company.engineer, at=company.at)
    company.turn_jobs()
    Queue.objects.filter(name="owed").update(state=QueueState.DRAINING)

    with pytest.raises(SpecRefused, match="queue owed is draining"):
        jobs.job_retry(job=job, actor=company.engineer, at=company.at)


def test_a_cycle_at_its_placement_bound_is_followed_by_another(
    sharing: Sharing,
) -> None:
    claims = [sharing.claim(sharing.batch) for _ in range(3)]
    policy = SchedulingPolicy(placements_per_cycle=1)

    assert scheduling_cycles.cycle_run(policy=policy, at=sharing.company.at) == 2

    assert Claim.objects.get(pk=claims[2].pk).explanation.startswith("needs 1 × 1 card of cpu")


@pytest.mark.parametrize("first", [True, False], ids=["before it is asked", "after"])
def test_a_card_released_for_a_beneficiary_during_a_cycle_is_not_allocated_to_others(
    company: Company, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    """A concurrent reader sees the card allocated, or nominated."""
    sharing = Sharing.of(company)
    victim = sharing.claim(sharing.batch, cards=2)
    assert company.schedule() == 1
    beneficiary, other = (
        sharing.claim(sharing.lender, cards=2),
        sharing.claim(sharing.batch, cards=2),
    )
    victim.refresh_from_db()
    services.claim_revoke(
        claim=victim,
        reason=ReleaseReason.PREEMPTED,
        grace=timedelta(minutes=1),
        at=company.at,
        explanation="owed to another",
        for_claim=beneficiary,
    )
    cards = Allocation.objects.filter(claim=victim).select_related("card", "node")
    seat = ReplicaPlacement(
        role="trainer",
        index=0,
        node=cards[0].node.uid,
        cards=tuple(each.card.uid for each in cards),
        count=2,
    )

    def given_back() -> None:
        assert services.claim_release(uid=victim.uid, reason=ReleaseReason.PREEMPTED, at=company.at)

    def nominated() -> dict[str, str]:
        if first:
            given_back()
        found = nominated_cards()
        if not first:
            given_back()
        return found

    monkeypatch.setattr(admissions, "nominated_cards", nominated)
    placement = ClaimPlacement(claim=other.uid, chip="cpu", replicas=(seat,), reason="stale")
    outcomes = services.claims_admit(placements=(placement,), at=company.at)
    assert (outcomes.admitted, set(outcomes.conflicts)) == ((), {other.uid})
    assert not Allocation.objects.filter(released_at=None).exists()
    assert set(nominated_cards().values()) == {beneficiary.uid}
