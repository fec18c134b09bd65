"""A scheduler killed between any two steps: the next cycle ends in the same state."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from apps.quotas import services
from apps.quotas.models import Allocation, Claim, Nomination, UsageRecord
from apps.quotas.reconcilers import scheduling_cycles
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.outbox.models import OutboxMessage
from tests.integration.company import Company, found
from tests.integration.mortality import Killed, Worker, bury
from tests.integration.quotas.sharing import Sharing

pytestmark = pytest.mark.slow

#: A cycle has fewer steps; more would mean that it does not end.
MAX_STEPS = 300


@pytest.fixture
def sharing(
    installation: object, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Sharing:
    """Four cards; each placement is a transaction of its own."""
    monkeypatch.setattr(scheduling_cycles, "BATCH", 1)
    return Sharing.of(found(node="fake-mortal", cards=4), guaranteed=3)


def crash_everywhere(
    action: Callable[[], object], *, begin: Callable[[], object], check: Callable[[str], None]
) -> list[str]:
    """Repeat the action, killed one step later each time and then completed by another run.

    Returns the step at which each run was killed.
    """
    worker, steps = Worker(), list[str]()
    for dies_at in range(MAX_STEPS):
        begin()
        worker.steps, worker.dies_at, worker.last_step = 0, dies_at, ""
        try:
            with worker.working():
                action()
        except Killed:
            bury(worker)
            action()
        check(worker.last_step)
        if not worker.last_step:
            return steps
        steps.append(worker.last_step)
    raise AssertionError(f"it is larger than {MAX_STEPS} steps")


def forget_what_was(company: Company) -> None:
    """Reset the rows for the next run, directly in the database."""
    Allocation.objects.filter(released_at=None).update(released_at=company.at)
    Claim.objects.exclude(state=ClaimState.RELEASED).update(state=ClaimState.RELEASED)
    OutboxMessage.objects.all().delete()


def published(topic: str) -> list[str]:
    return [each.payload["claim_uid"] for each in OutboxMessage.objects.filter(topic=topic)]


def test_the_next_cycle_completes_one_that_was_killed_anywhere(sharing: Sharing) -> None:
    company = sharing.company
    claims: dict[str, Claim] = {}

    def begin() -> None:
        forget_what_was(company)
        claims["borrower"] = sharing.claim(sharing.batch, cards=2)
        company.schedule()
        OutboxMessage.objects.all().delete()
        for name in ("first", "second", "third"):
            claims[name] = sharing.claim(sharing.lender)

    def check(died: str) -> None:
        for claim in claims.values():
            claim.refresh_from_db()
        states = {name: claim.state for name, claim in claims.items()}
        assert states == {
            "borrower": ClaimState.REVOKING,
            "first": ClaimState.ADMITTED,
            "second": ClaimState.ADMITTED,
            "third": ClaimState.PENDING,
        }, died
        held = Allocation.objects.filter(released_at=None)
        assert held.count() == held.values("card").distinct().count() == 4, died
        assert claims["borrower"].revoked_for == claims["third"], died
        admitted = {claims["first"].uid, claims["second"].uid}
        assert (len(published("claim.admitted")), set(published("claim.admitted"))) == (
            2,
            admitted,
        ), died
        assert published("claim.revoking") == [claims["borrower"].uid], died
        for name in ("first", "second"):
            assert claims[name].transitions.filter(event="admit").count() == 1, died
        assert claims["third"].explanation.startswith("waiting for 2 × cpu"), died

    steps = crash_everywhere(company.schedule, begin=begin, check=check)

    leases = sum("persistence_lease" in word and "FOR UPDATE" in word for word in steps)
    assert leases == 4, "two placements, the revocations and the reasons, each by itself"


def test_a_release_by_a_killed_worker_is_recorded_and_nominated_once(
    sharing: Sharing,
) -> None:
    company = sharing.company
    claims: dict[str, Claim] = {}

    def begin() -> None:
        forget_what_was(company)
        claims["borrower"] = sharing.claim(sharing.batch, cards=4)
        company.schedule()
        claims["owner"] = sharing.claim(sharing.lender, cards=3)
        company.schedule()
        company.later(timedelta(seconds=90))

    def release() -> None:
        uid = claims["borrower"].uid
        services.claim_release(uid=uid, reason=ReleaseReason.FINISHED, at=company.at)

    def check(died: str) -> None:
        for claim in claims.values():
            claim.refresh_from_db()
        assert claims["borrower"].state == ClaimState.RELEASED, died
        # A record for each day (UTC).
        records = UsageRecord.objects.filter(claim=claims["borrower"])
        assert len({record.since.date() for record in records}) == len(records), died
        recorded = sum(record.card_microseconds for record in records)
        assert recorded == 4 * 90 * 1_000_000, died
        assert Nomination.objects.filter(claim=claims["owner"]).count() == 4, died
        assert published("claim.released").count(claims["borrower"].uid) == 1, died
        assert company.schedule() == 1, died
        assert not Nomination.objects.exists(), died

    steps = crash_everywhere(release, begin=begin, check=check)

    before, after = (
        next(number for number, word in enumerate(steps) if table in word)
        for table in ("quotas_usagerecord", "quotas_nomination")
    )
    assert before < after < len(steps) - 1
