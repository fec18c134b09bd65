"""Moves of running work: proposed, approved, and carried out by the loop with the real owners of the work."""

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
from apps.quotas.models import Allocation, Claim, Nomination, Rearrangement
from apps.quotas.reconcilers.rearrangements import rearrangements_reconcile
from apps.quotas.selectors.openings import openings_now
from apps.quotas.services import rearrangements as services
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.claims import ClaimState, ReleaseReason
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.rearrangements import Purpose
from tests import factories
from tests.integration.company import Company

pytestmark = pytest.mark.django_db
NODE_CARDS = 4


class Shop:
    """Two nodes of four cards, each half full of work that could stand on one of them."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.admin = factories.person("root", admin=True)
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
        """As if it had written a checkpoint."""
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

    def propose(self, **wish: object) -> Rearrangement:
        asked = services.Wish(**{"purpose": Purpose.WHOLE_NODES, **wish})  # type: ignore[arg-type]
        return services.rearrangement_propose(wish=asked, actor=self.admin, at=self.company.at)

    def approve(self, row: Rearrangement, actor: User | None = None) -> None:
        services.rearrangement_approve(
            rearrangement=row, actor=actor or self.admin, at=self.company.at
        )

    def turn(self) -> None:
        """Every loop once, some seconds later."""
        self.company.later(timedelta(seconds=5))
        rearrangements_reconcile(at=self.company.at)
        self.company.turn_jobs()
        self.company.schedule()

    def until(self, row: Rearrangement, state: str, turns: int = 20) -> Rearrangement:
        for _ in range(turns):
            row.refresh_from_db()
            if row.state == state:
                return row
            self.turn()
        raise AssertionError(f"{row.state}: {row.state_reason}, after {turns} turns")


@pytest.fixture
def shop(company: Company) -> Shop:
    return Shop(company)


def test_approved_work_saves_goes_on_elsewhere_and_leaves_a_whole_node(shop: Shop) -> None:
    assert openings_now().whole == 0
    row = shop.propose()
    assert (row.state, row.whole_before, row.whole_after) == ("proposed", 0, 1)
    shop.approve(row)
    shop.until(row, "done")
    move = row.moves.get()
    assert (move.state, move.claim.release_reason) == ("landed", ReleaseReason.MOVED)
    assert shop.nodes_of(shop.staying) == shop.nodes_of(shop.other)
    assert row.whole_found == openings_now().whole == 1
    assert latest_attempt(Job.objects.get(uid=move.claim.work_uid)).continues is not None
    assert not Nomination.objects.exists()


def test_nothing_moves_before_somebody_has_approved_it(shop: Shop) -> None:
    row = shop.propose()
    for _ in range(3):
        shop.turn()
    row.refresh_from_db()
    assert row.state == "proposed"
    assert not Claim.objects.filter(state=ClaimState.REVOKING).exists()


def test_room_is_made_for_a_claim_and_nobody_else_gets_it(shop: Shop) -> None:
    large = shop.company.submit(name="large", cards=4)
    shop.company.schedule()
    waiting = shop.claim(large)
    assert waiting.state == ClaimState.PENDING
    row = shop.propose(purpose=Purpose.ROOM_FOR, claim=waiting)
    shop.approve(row)
    rearrangements_reconcile(at=shop.company.at)
    kept = Nomination.objects.filter(claim=waiting)
    assert kept.count() == NODE_CARDS
    # An urgent claim that would fit on the cards that are being freed has to wait.
    shop.company.make_queue_admin()
    small = shop.company.submit(name="small", cards=1, priority=100)
    shop.until(row, "done")
    shop.company.schedule()
    assert shop.claim(large).state == ClaimState.ADMITTED
    assert shop.claim(small).state == ClaimState.PENDING


def test_work_that_ended_meanwhile_makes_the_plan_stale(shop: Shop) -> None:
    row = shop.propose()
    moved = Job.objects.get(uid=row.moves.get().claim.work_uid)
    shop.finish(latest_attempt(moved))
    with pytest.raises(services.RearrangementStale, match="move 1: the work has ended"):
        shop.approve(row)


def test_cards_that_others_have_got_meanwhile_make_the_plan_stale(shop: Shop) -> None:
    row = shop.propose()
    target = row.moves.get().target[0]["cards"][0]
    Card.objects.filter(uid=target).update(state="no_new_work")
    with pytest.raises(services.RearrangementStale, match="is no longer free"):
        shop.approve(row)


def test_what_becomes_stale_between_approval_and_the_first_step_fails(shop: Shop) -> None:
    row = shop.propose()
    shop.approve(row)
    shop.finish(latest_attempt(Job.objects.get(uid=row.moves.get().claim.work_uid)))
    rearrangements_reconcile(at=shop.company.at)
    row.refresh_from_db()
    assert (row.state, row.moves.get().state) == ("failed", "dropped")
    assert "the work has ended" in row.state_reason
    assert not Nomination.objects.exists()


def test_only_one_is_carried_out_at_a_time(shop: Shop) -> None:
    first, second = shop.propose(), shop.propose()
    shop.approve(first)
    with pytest.raises(services.AnotherUnderWay, match="approve this one when it has ended"):
        shop.approve(second)


def test_a_proposal_that_nobody_approves_expires(shop: Shop) -> None:
    row = shop.propose()
    shop.company.later(timedelta(minutes=31))
    with pytest.raises(IllegalTransition):
        shop.approve(row)
    rearrangements_reconcile(at=shop.company.at)
    row.refresh_from_db()
    assert row.state == "expired"


def test_a_move_that_does_not_land_in_time_fails_the_plan(shop: Shop) -> None:
    row = shop.propose()
    shop.approve(row)
    rearrangements_reconcile(at=shop.company.at)
    assert row.moves.get().state == "stopping"
    rearrangements_reconcile(at=shop.company.later(timedelta(minutes=16)))
    row.refresh_from_db()
    assert (row.state, row.moves.get().state) == ("failed", "missed")
    assert "did not land in time" in row.state_reason


def test_somebody_can_end_it_between_moves(shop: Shop) -> None:
    row = shop.propose()
    shop.approve(row)
    rearrangements_reconcile(at=shop.company.at)
    row.refresh_from_db()
    assert not services.rearrangement_dismiss(
        rearrangement=row, actor=shop.admin, at=shop.company.at
    )
    # Its only move is in motion: that lands, and with it the plan is done.
    shop.until(row, "done")


def test_dismissed_before_the_first_step_nothing_is_moved(shop: Shop) -> None:
    row = shop.propose()
    shop.approve(row)
    assert services.rearrangement_dismiss(rearrangement=row, actor=shop.admin, at=shop.company.at)
    shop.turn()
    assert row.moves.get().claim.state == ClaimState.ADMITTED


def test_work_that_never_saved_stays_where_it_is(shop: Shop) -> None:
    Claim.objects.update(checkpointed_at=None)
    with pytest.raises(services.NothingToMove):
        shop.propose()


@pytest.mark.parametrize("who", ["engineer", "stranger"])
def test_only_who_manages_queues_or_the_fleet_of_the_team_may_move_its_work(
    shop: Shop, who: str
) -> None:
    row = shop.propose()
    actor: User = getattr(shop.company, who)
    with pytest.raises(PermissionRefused):
        shop.approve(row, actor)
    with pytest.raises(PermissionRefused):
        services.rearrangement_propose(
            wish=services.Wish(purpose=Purpose.WHOLE_NODES), actor=actor, at=shop.company.at
        )


def test_a_queue_admin_of_the_team_may(shop: Shop) -> None:
    shop.company.make_queue_admin()
    row = shop.propose()
    shop.approve(row, shop.company.engineer)
    assert row.approved_by_name == shop.company.engineer.username


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda row: Rearrangement.objects.filter(pk=row.pk).update(state="dismissed"),
        lambda row: Claim.objects.filter(pk=row.moves.get().claim_id).update(state="revoking"),
    ],
)
def test_a_step_that_was_overtaken_changes_nothing(
    shop: Shop, meanwhile: Callable[[Rearrangement], int]
) -> None:
    row = shop.propose()
    shop.approve(row)
    meanwhile(row)
    rearrangements_reconcile(at=shop.company.at)
    assert not row.moves.filter(state="stopping").exists()
