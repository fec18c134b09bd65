"""The scheduling cycle on real rows: no card allocated twice, every pending claim with a reason."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.fleet.models import Card, Cluster, Node
from apps.jobs.models import Job
from apps.jobs.selectors import latest_attempt
from apps.quotas import selectors, services
from apps.quotas.models import Allocation, Claim, Entitlement, Queue
from apps.quotas.reconcilers import scheduling_cycles
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.quotas.claims import ClaimState, GangShape, ReleaseReason, RoleShape
from controlplane.domain.quotas.queues import QueueState
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.outbox.models import OutboxMessage
from controlplane.persistence.leases import LeaderLease, hold_leader_lease
from controlplane.persistence.models import Lease
from tests.integration.company import Company, entitle
from tests.integration.quotas.cycles import changed_after_plan
from tests.integration.quotas.sharing import Sharing
from tests.integration.threads import at_once


def claim_of(job: Job) -> Claim:
    return Claim.objects.get(uid=latest_attempt(job).claim_uid)


def test_a_claim_is_admitted_and_its_owner_notified(company: Company) -> None:
    job = company.submit(cards=2)

    assert company.schedule() == 1

    claim = claim_of(job)
    assert (claim.state, claim.chip) == (ClaimState.ADMITTED, "cpu")
    node = Node.objects.get()
    assert claim.placement == [{"role": "trainer", "index": 0, "node": node.uid, "cards": [0, 1]}]
    assert claim.explanation.startswith("1 × 2 cards of cpu on fake-")
    assert set(claim.allocations.values_list("card__index", flat=True)) == {0, 1}
    messages = OutboxMessage.objects.filter(topic="claim.admitted")
    assert [message.payload for message in messages] == [{"claim_uid": claim.uid}]


def test_a_node_that_chooses_cards_has_as_many_allocated_as_placed(
    company: Company,
) -> None:
    Cluster.objects.update(binding=Cluster.BindingMode.NODE)
    first, second = company.submit("first", cards=1), company.submit("second", cards=1)
    third = company.submit("third", cards=1)

    assert company.schedule() == 2
    held = Allocation.objects.filter(released_at=None).values_list("card__index", flat=True)
    assert sorted(held) == [0, 1]
    assert {len(claim_of(job).placement[0]["cards"]) for job in (first, second)} == {1}
    assert company.schedule() == 0
    assert claim_of(third).state == ClaimState.PENDING

    services.claim_release(uid=claim_of(first).uid, reason=ReleaseReason.FINISHED, at=company.at)
    assert company.schedule() == 1


def test_a_cordoned_card_blocks_a_node_that_chooses_cards(
    company: Company,
) -> None:
    """The device plug-in still advertises the card and might allocate it."""
    Cluster.objects.update(binding=Cluster.BindingMode.NODE)
    Card.objects.filter(index=0).update(state=CardState.ISOLATED)
    job = company.submit(cards=1)
    assert company.schedule() == 0
    Card.objects.filter(index=0).update(state=CardState.USABLE)
    assert company.schedule() == 1
    assert claim_of(job).state == ClaimState.ADMITTED


def test_a_claim_without_a_free_card_is_pending_with_a_reason(
    company: Company,
) -> None:
    first = company.submit("first", cards=2)
    second = company.submit("second", cards=1)

    assert company.schedule() == 1
    waiting = claim_of(second)
    assert waiting.state == ClaimState.PENDING
    assert waiting.explanation == (
        "needs 1 × 1 card of cpu; 0 of 2 are free, at most 0 on one node"
    )
    assert waiting.explanation_numbers == {"wanted": 1, "free": 0, "total": 2, "best_node": 0}
    company.turn_jobs()
    assert latest_attempt(second).message == waiting.explanation

    services.claim_release(uid=claim_of(first).uid, reason=ReleaseReason.FINISHED, at=company.at)
    assert company.schedule() == 1
    assert claim_of(second).state == ClaimState.ADMITTED


def test_a_claim_that_can_never_fit_has_that_reason(company: Company) -> None:
    job = company.submit(cards=3)
    company.schedule()
    assert claim_of(job).explanation == ("needs 3 × cpu on one node; the largest node has 2")


def test_a_claim_that_exceeds_free_memory_has_that_reason(company: Company) -> None:
    company.submit("first", memory=10 << 30)
    second = company.submit("second", memory=10 << 30)

    assert company.schedule() == 1

    assert claim_of(second).explanation == (
        "needs 10.0 GiB of memory on one node; at most 6.0 GiB is free on a node"
    )


def test_a_queue_respects_its_cap_and_a_closed_one_admits_nothing(
    company: Company,
) -> None:
    entitle(company.queue, cap=1)
    first, second = company.submit("first"), company.submit("second")

    assert company.schedule() == 1
    assert claim_of(second).explanation == "needs 1 × cpu; queue default uses 1 of its cap of 1"

    Entitlement.objects.all().delete()
    Queue.objects.update(state=QueueState.CLOSED)
    assert company.schedule() == 0
    assert claim_of(second).explanation.startswith("queue default is closed")
    assert claim_of(first).state == ClaimState.ADMITTED


def test_a_higher_priority_goes_first_and_age_decides_among_equals(company: Company) -> None:
    low = company.submit("low", cards=2)
    company.make_queue_admin()
    older = company.submit("older", cards=2, priority=5)
    younger = company.submit("younger", cards=2, priority=5)

    assert company.schedule() == 1

    states = [claim_of(job).state for job in (low, older, younger)]
    assert states == [ClaimState.PENDING, ClaimState.ADMITTED, ClaimState.PENDING]


@pytest.mark.parametrize("state", [CardState.NO_NEW_WORK, CardState.ISOLATED, CardState.UNKNOWN])
def test_an_unusable_card_is_not_allocated(company: Company, state: CardState) -> None:
    Card.objects.filter(index=0).update(state=state)
    job = company.submit()

    company.schedule()

    assert claim_of(job).placement[0]["cards"] == [1]


@pytest.mark.parametrize("change", [{"cordoned": True}, {"ready": False}])
def test_a_cordoned_or_unreachable_node_gets_no_claims(
    company: Company, change: dict[str, bool]
) -> None:
    Node.objects.update(**change)
    company.submit()

    assert company.schedule() == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda: Card.objects.update(state=CardState.ISOLATED),
        lambda: Node.objects.update(cordoned=True),
        lambda: Queue.objects.update(state=QueueState.CLOSED),
        lambda: entitle(Queue.objects.get(), cap=0),
        lambda: Lease.objects.update(token=99),
        lambda: Lease.objects.update(expires_at=timezone.now() - timedelta(minutes=1)),
    ],
    ids=[
        "card isolated",
        "node cordoned",
        "queue closed",
        "cap lowered",
        "fenced",
        "lease expired",
    ],
)
def test_an_invalid_placement_is_dropped(
    company: Company, monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]
) -> None:
    job = company.submit()

    with changed_after_plan(monkeypatch, change):
        assert company.schedule() == 0

    assert claim_of(job).state == ClaimState.PENDING
    assert not Allocation.objects.exists()
    assert not OutboxMessage.objects.filter(topic="claim.admitted").exists()


def test_a_conflict_does_not_affect_other_placements(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = company.submit("first"), company.submit("second")

    with changed_after_plan(
        monkeypatch, lambda: Card.objects.filter(index=0).update(state=CardState.ISOLATED)
    ):
        assert company.schedule() == 1

    assert claim_of(first).state == ClaimState.PENDING
    assert claim_of(second).placement[0]["cards"] == [1]


def test_a_claim_cancelled_during_a_cycle_is_not_admitted(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = company.submit()
    uid = claim_of(job).uid

    def release() -> None:
        services.claim_release(uid=uid, reason=ReleaseReason.CANCELLED, at=company.at)

    with changed_after_plan(monkeypatch, release):
        assert company.schedule() == 0

    claim = claim_of(job)
    assert (claim.state, claim.release_reason) == ("released", "cancelled")
    assert not Allocation.objects.exists()


def test_a_cycle_does_nothing_while_another_holds_the_lease(company: Company) -> None:
    company.submit()

    with hold_leader_lease(scheduling_cycles.LEASE, ttl=timedelta(minutes=1)):
        assert company.schedule() == 0

    assert company.schedule() == 1


def test_the_database_rejects_a_second_allocation_of_a_card(company: Company) -> None:
    company.submit()
    company.schedule()
    taken = Allocation.objects.get()
    other = claim_of(company.submit("another"))

    with pytest.raises(IntegrityError, match="allocation_card_held_once"), transaction.atomic():
        Allocation.objects.create(
            claim=other,
            card=taken.card,
            node=taken.node,
            role="trainer",
            replica=0,
            allocated_at=company.at,
        )


def test_concurrent_cycles_never_allocate_a_card_twice(
    committed_company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if each of them believes that it holds the lease."""
    company = committed_company
    for number in range(6):
        company.submit(f"job {number}")

    def admit() -> int:
        with transaction.atomic():
            snapshot = selectors.scheduling_snapshot()
        placements = plan_cycle(snapshot, SchedulingPolicy(), company.at).placements
        lease = LeaderLease(name="nobody checks", token=0)
        monkeypatch.setattr(LeaderLease, "check", lambda self: True)
        return len(
            scheduling_cycles._admit_placements(placements, lease=lease, at=company.at).admitted
        )

    outcomes = at_once(admit, admit, admit)

    assert sum(outcome for outcome in outcomes if isinstance(outcome, int)) == 2
    held = Allocation.objects.filter(released_at=None)
    assert held.count() == held.values("card").distinct().count() == 2
    admitted = Claim.objects.filter(state=ClaimState.ADMITTED)
    assert admitted.count() == 2
    assert OutboxMessage.objects.filter(topic="claim.admitted").count() == 2


def test_two_concurrent_cycles_admit_each_claim_once(committed_company: Company) -> None:
    company = committed_company
    company.submit("first")
    company.submit("second")

    outcomes = at_once(company.schedule, company.schedule, company.schedule)

    assert sum(outcome for outcome in outcomes if isinstance(outcome, int)) == 2
    assert Allocation.objects.filter(released_at=None).count() == 2


def test_concurrent_releases_release_once(committed_company: Company) -> None:
    company = committed_company
    claim = claim_of(company.submit())
    company.schedule()

    def release() -> bool:
        return services.claim_release(uid=claim.uid, reason=ReleaseReason.FINISHED, at=company.at)

    assert sorted(map(str, at_once(release, release, release))) == ["False", "False", "True"]
    assert OutboxMessage.objects.filter(topic="claim.released").count() == 1


def test_the_reason_of_an_eviction_takes_precedence_over_the_owners(company: Company) -> None:
    claim = claim_of(company.submit())
    company.schedule()
    claim.refresh_from_db()
    services.claim_revoke(
        claim=claim,
        reason=ReleaseReason.FAULT,
        grace=timedelta(seconds=5),
        at=company.at,
        explanation="card 0 reports uncorrectable errors",
    )
    assert claim.revoke_by == company.at + timedelta(seconds=5)

    services.claim_release(uid=claim.uid, reason=ReleaseReason.FINISHED, at=company.at)

    claim.refresh_from_db()
    assert claim.release_reason == ReleaseReason.FAULT


def test_a_claim_without_cards_cannot_be_evicted(company: Company) -> None:
    claim = claim_of(company.submit())
    with pytest.raises(IllegalTransition, match="a claim that is pending cannot revoke"):
        services.claim_revoke(
            claim=claim,
            reason=ReleaseReason.FAULT,
            grace=timedelta(),
            at=company.at,
            explanation="the node is isolated",
        )


def test_a_claim_that_is_being_revoked_still_counts_against_its_queue(company: Company) -> None:
    entitle(company.queue, cap=1)
    first, second = company.submit("first"), company.submit("second")
    company.schedule()
    services.claim_revoke(
        claim=claim_of(first),
        reason=ReleaseReason.PREEMPTED,
        grace=timedelta(minutes=1),
        at=company.at,
        explanation="a larger job needs the card",
    )

    assert company.schedule() == 0
    assert claim_of(second).state == ClaimState.PENDING


def test_the_snapshot_contains_allocated_cards_and_resources(company: Company) -> None:
    company.submit(cards=1, memory=1 << 30)
    company.schedule()
    company.make_queue_admin()
    company.submit("another", priority=3)

    seen = selectors.scheduling_snapshot()

    (node,) = seen.nodes
    assert [card.held_by is None for card in node.cards] == [False, True]
    assert (node.allocated.cpu, node.allocated.memory) == (1000, 1 << 30)
    (queue,) = seen.queues.values()
    assert queue.used == {"cpu": 1}
    (waiting,) = seen.claims
    assert (waiting.priority, waiting.chips) == (3, ("cpu",))


def test_a_claim_that_accepts_no_chip_is_refused(company: Company) -> None:
    shape = GangShape(roles=(RoleShape(name="trainer", replicas=1, cards=1),))
    request = services.ClaimRequest(
        owner=("attempt", "1" * 32),
        team=company.team,
        queue=company.queue,
        shape=shape,
        chips=(),
    )
    with pytest.raises(ValueError, match="at least one chip"):
        services.claims_create(requests=[request])


def test_a_queue_of_another_team_is_not_offered(company: Company) -> None:
    own = Queue.objects.create(name="own", team=company.team)
    Queue.objects.create(name="theirs", team=company.other_team)

    assert set(selectors.queues_for_team(company.team)) == {company.queue, own}


def test_many_jobs_pass_through_two_cards(company: Company) -> None:
    submitted = [company.submit(f"job {number}") for number in range(5)]
    for _ in range(12):
        company.schedule()
        company.turn_jobs()
        for job in submitted:
            attempt = latest_attempt(job)
            if attempt.state == "launched":
                company.cluster.run(attempt.launch_name)
                company.finish(attempt)
        assert Allocation.objects.filter(released_at=None).count() <= 2

    for job in submitted:
        job.refresh_from_db()
    assert {job.state for job in submitted} == {"succeeded"}


def test_cycles_continue_until_every_pending_claim_is_considered(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shapes that do not fit come first, and one cycle searches for one or two of them."""
    monkeypatch.setattr(scheduling_cycles, "SCHEDULER", scheduling_cycles.SchedulerProcess())
    sharing = Sharing.of(company)
    for number in range(4):
        sharing.claim(sharing.batch, memory=2**50 + number)
    fits = sharing.claim(sharing.batch)
    policy = SchedulingPolicy(attempts_per_cycle=2, reservations=0, preemption=False)

    with monkeypatch.context() as patch:
        patch.setattr(scheduling_cycles, "MAX_CYCLES_PER_RUN", 1)
        assert scheduling_cycles.cycle_run(policy=policy, at=company.at) == 0
    assert scheduling_cycles.SCHEDULER.cycle_state.untried, "one cycle does not come to the last"

    assert scheduling_cycles.cycle_run(policy=policy, at=company.at) == 1
    fits.refresh_from_db()
    assert fits.state == ClaimState.ADMITTED
