"""Defragmentation plans: proposed, approved, and executed by the controller with real workloads."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import cast

import pytest

from apps.accounts.models import User
from apps.accounts.selectors import PermissionRefused
from apps.fleet import selectors as fleet
from apps.fleet.models import Card, Cluster
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors import latest_attempt
from apps.quotas.models import Allocation, Claim, Defragmentation, Nomination
from apps.quotas.reconcilers.defragmentation import defragmentation_reconcile
from apps.quotas.selectors.free_capacity import fleet_fragmentation
from apps.quotas.services import defragmentation as services
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.domain.scheduling.defragmentation_runs import DefragmentationPurpose
from tests import factories
from tests.integration.company import Company

pytestmark = pytest.mark.django_db
NODE_CARDS = 4


class Shop:
    """Two nodes of four cards, each half full of workloads that fit on one of them."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.admin = factories.user("root", admin=True)
        company.cluster_row.delete()
        self.rows = [
            Cluster.objects.create(
                name=f"{company.team.slug}-{name}-{company.at.timestamp():.0f}",
                kind="fake",
                options={"node": f"{name}-{id(self)}", "cards": NODE_CARDS},
            )
            for name in "ab"
        ]
        company.take_stock()
        staying, leaving, other = (self.running(f"work {number}") for number in range(3))
        self.staying, self.other = staying[0], other[0]
        self.finish(leaving[1])

    def cluster_of(self, attempt: Attempt) -> FakeCluster:
        attempt.refresh_from_db()
        assert attempt.cluster is not None
        return cast(FakeCluster, fleet.cluster_adapter(attempt.cluster))

    def running(self, name: str, cards: int = 2) -> tuple[Job, Attempt]:
        job = self.company.submit(name=name, cards=cards)
        self.company.schedule()
        self.company.turn_jobs()
        attempt = latest_attempt(job)
        self.cluster_of(attempt).run(attempt.launch_name)
        self.company.turn_jobs()
        self.save(attempt)
        return job, attempt

    def save(self, attempt: Attempt) -> None:
        """Record a checkpoint of the workload."""
        Claim.objects.filter(uid=attempt.claim_uid).update(checkpointed_at=self.company.at)

    def finish(self, attempt: Attempt) -> None:
        self.company.report_outputs(attempt)
        self.cluster_of(attempt).finish(attempt.launch_name)
        self.company.turn_jobs()

    def spread(self, moved: Job) -> None:
        """Two nodes that are half full again."""
        attempt = latest_attempt(moved)
        self.company.turn_jobs()
        self.cluster_of(attempt).run(attempt.launch_name)
        self.company.turn_jobs()
        self.finish(attempt)
        plug, _ = self.running("plug"), self.running("apart")
        self.finish(plug[1])

    def claim(self, job: Job) -> Claim:
        return Claim.objects.get(uid=latest_attempt(job).claim_uid)

    def nodes_of(self, job: Job) -> set[str]:
        held = Allocation.objects.filter(claim=self.claim(job), released_at=None)
        return set(held.values_list("node__name", flat=True))

    def propose(self, **goal: object) -> Defragmentation:
        goal.setdefault("purpose", DefragmentationPurpose.WHOLE_NODES)
        asked = services.DefragmentationRequest(**goal)  # type: ignore[arg-type]
        return services.defragmentation_propose(
            plan_request=asked, actor=self.admin, at=self.company.at
        )

    def approve(self, row: Defragmentation, actor: User | None = None) -> None:
        services.defragmentation_approve(plan=row, actor=actor or self.admin, at=self.company.at)

    def turn(self) -> None:
        """Run every controller once, some seconds later."""
        self.company.later(timedelta(seconds=5))
        defragmentation_reconcile(at=self.company.at)
        self.company.turn_jobs()
        self.company.schedule()

    def until(self, row: Defragmentation, state: str, runs: int = 20) -> Defragmentation:
        for _ in range(runs):
            row.refresh_from_db()
            if row.state == state:
                return row
            self.turn()
        raise AssertionError(f"{row.state}: {row.state_reason}, after {runs} turns")


@pytest.fixture
def shop(company: Company) -> Shop:
    return Shop(company)


def test_an_approved_plan_relocates_workloads_and_leaves_an_idle_node(shop: Shop) -> None:
    assert fleet_fragmentation().whole == 0
    row = shop.propose()
    assert (row.state, row.whole_before, row.whole_after) == ("proposed", 0, 1)
    shop.approve(row)
    shop.until(row, "done")
    move = row.moves.get()
    assert (move.state, move.claim.release_reason) == ("landed", ReleaseReason.MOVED)
    assert shop.nodes_of(shop.staying) == shop.nodes_of(shop.other)
    assert row.whole_found == fleet_fragmentation().whole == 1
    assert latest_attempt(Job.objects.get(uid=move.claim.work_uid)).continues is not None
    assert not Nomination.objects.exists()


def test_nothing_is_relocated_before_approval(shop: Shop) -> None:
    row = shop.propose()
    for _ in range(3):
        shop.turn()
    row.refresh_from_db()
    assert row.state == "proposed"
    assert not Claim.objects.filter(state=ClaimState.REVOKING).exists()


def test_cards_are_freed_and_reserved_for_a_claim(shop: Shop) -> None:
    large = shop.company.submit(name="large", cards=4)
    shop.company.schedule()
    waiting = shop.claim(large)
    assert waiting.state == ClaimState.PENDING
    row = shop.propose(purpose=DefragmentationPurpose.ROOM_FOR, claim=waiting)
    shop.approve(row)
    defragmentation_reconcile(at=shop.company.at)
    nominations = Nomination.objects.filter(claim=waiting)
    assert nominations.count() == NODE_CARDS
    # An urgent claim that would fit on the cards that are being freed has to wait.
    shop.company.make_queue_admin()
    small = shop.company.submit(name="small", cards=1, priority=100)
    shop.until(row, "done")
    shop.company.schedule()
    assert shop.claim(large).state == ClaimState.ADMITTED
    assert shop.claim(small).state == ClaimState.PENDING


def test_a_finished_workload_makes_the_plan_stale(shop: Shop) -> None:
    row = shop.propose()
    moved = Job.objects.get(uid=row.moves.get().claim.work_uid)
    shop.finish(latest_attempt(moved))
    with pytest.raises(
        services.DefragmentationPlanStale, match="relocation 1: the workload has ended"
    ):
        shop.approve(row)


def test_allocated_target_cards_make_the_plan_stale(shop: Shop) -> None:
    row = shop.propose()
    target = row.moves.get().target[0]["cards"][0]
    Card.objects.filter(uid=target).update(state="no_new_work")
    with pytest.raises(services.DefragmentationPlanStale, match="is no longer free"):
        shop.approve(row)


def test_a_plan_that_becomes_stale_after_approval_fails(shop: Shop) -> None:
    row = shop.propose()
    shop.approve(row)
    shop.finish(latest_attempt(Job.objects.get(uid=row.moves.get().claim.work_uid)))
    defragmentation_reconcile(at=shop.company.at)
    row.refresh_from_db()
    assert (row.state, row.moves.get().state) == ("failed", "dropped")
    assert "the workload has ended" in row.state_reason
    assert not Nomination.objects.exists()


def test_only_one_plan_is_executed_at_a_time(shop: Shop) -> None:
    first, second = shop.propose(), shop.propose()
    shop.approve(first)
    with pytest.raises(
        services.DefragmentationInProgress, match="approve this plan when it has ended"
    ):
        shop.approve(second)


def test_a_plan_without_approval_expires(shop: Shop) -> None:
    row = shop.propose()
    shop.company.later(timedelta(minutes=31))
    with pytest.raises(IllegalTransition):
        shop.approve(row)
    defragmentation_reconcile(at=shop.company.at)
    row.refresh_from_db()
    assert row.state == "expired"


def test_a_late_relocation_fails_the_plan(shop: Shop) -> None:
    row = shop.propose()
    shop.approve(row)
    defragmentation_reconcile(at=shop.company.at)
    assert row.moves.get().state == "stopping"
    defragmentation_reconcile(at=shop.company.later(timedelta(minutes=16)))
    row.refresh_from_db()
    assert (row.state, row.moves.get().state) == ("failed", "missed")
    assert "did not finish in time" in row.state_reason


def test_a_plan_can_be_stopped_between_relocations(shop: Shop) -> None:
    row = shop.propose()
    shop.approve(row)
    defragmentation_reconcile(at=shop.company.at)
    row.refresh_from_db()
    assert not services.defragmentation_dismiss(plan=row, actor=shop.admin, at=shop.company.at)
    # Its only move is in motion: that lands, and with it the plan is done.
    shop.until(row, "done")


def test_a_plan_dismissed_before_the_first_step_relocates_nothing(shop: Shop) -> None:
    row = shop.propose()
    shop.approve(row)
    assert services.defragmentation_dismiss(plan=row, actor=shop.admin, at=shop.company.at)
    shop.turn()
    assert row.moves.get().claim.state == ClaimState.ADMITTED


def test_a_workload_without_checkpoint_is_not_relocated(shop: Shop) -> None:
    Claim.objects.update(checkpointed_at=None)
    with pytest.raises(services.NoUsefulRelocation):
        shop.propose()


@pytest.mark.parametrize("who", ["engineer", "stranger"])
def test_only_queue_admins_and_operators_may_relocate_workloads(shop: Shop, who: str) -> None:
    row = shop.propose()
    actor: User = getattr(shop.company, who)
    with pytest.raises(PermissionRefused):
        shop.approve(row, actor)
    with pytest.raises(PermissionRefused):
        services.defragmentation_propose(
            plan_request=services.DefragmentationRequest(
                purpose=DefragmentationPurpose.WHOLE_NODES
            ),
            actor=actor,
            at=shop.company.at,
        )


def test_a_queue_admin_of_the_team_may_relocate_workloads(shop: Shop) -> None:
    shop.company.make_queue_admin()
    row = shop.propose()
    shop.approve(row, shop.company.engineer)
    assert row.approved_by_name == shop.company.engineer.username


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda row: Defragmentation.objects.filter(pk=row.pk).update(state="dismissed"),
        lambda row: Claim.objects.filter(pk=row.moves.get().claim_id).update(state="revoking"),
    ],
)
def test_a_step_after_a_concurrent_change_has_no_effect(
    shop: Shop, meanwhile: Callable[[Defragmentation], int]
) -> None:
    row = shop.propose()
    shop.approve(row)
    meanwhile(row)
    defragmentation_reconcile(at=shop.company.at)
    assert not row.moves.filter(state="stopping").exists()
