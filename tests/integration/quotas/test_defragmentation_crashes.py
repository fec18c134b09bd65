"""The worker that executes relocations is killed between any two steps; the next one continues."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.jobs.models import Job
from apps.quotas.models import Allocation, Claim, Defragmentation, Nomination
from apps.quotas.reconcilers.defragmentation import defragmentation_reconcile
from controlplane.domain.quotas.claims import ClaimState
from tests.integration.company import Company
from tests.integration.mortality import Worker, live
from tests.integration.quotas.test_defragmentation import Shop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
#: Of all the steps, those that are tried: a death before each would take minutes and say the same.
EVERY = 29


def carried_out(shop: Shop, row: Defragmentation, worker: Worker) -> None:
    def turn() -> None:
        shop.company.later(timedelta(seconds=5))
        defragmentation_reconcile(at=shop.company.at)

    def landed() -> bool:
        # The others' loops live on.
        worker.at_work = False
        shop.company.turn_jobs()
        shop.company.schedule()
        row.refresh_from_db()
        return row.state not in ("approved", "under_way")

    live(worker, turn=turn, until=landed)


def test_a_worker_killed_at_any_step_leaves_relocations_that_are_executed_once(
    committed_company: Company,
) -> None:
    shop = Shop(committed_company)
    steps, dies_at = EVERY + 1, 0
    while dies_at < steps:
        row = shop.propose()
        shop.approve(row)
        worker = Worker()
        worker.dies_at = dies_at
        carried_out(shop, row, worker)
        move = row.moves.get()
        assert (row.state, move.state) == ("done", "landed"), worker.last_step
        again = Claim.objects.filter(work_uid=move.claim.work_uid, pk__gt=move.claim_id)
        assert [claim.state for claim in again] == [ClaimState.ADMITTED], worker.last_step
        assert move.transitions.count() == 3
        assert not Nomination.objects.exists()
        steps = max(steps, worker.steps)
        dies_at += EVERY
        shop.spread(Job.objects.get(uid=move.claim.work_uid))
    held = Allocation.objects.filter(released_at=None)
    assert held.count() == held.values("card").distinct().count() == 4
