"""The limit of pending claims per user."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django import Settings

from apps.jobs.models import Job
from apps.jobs.services import SpecRefused
from apps.quotas import services
from apps.quotas.models import Claim
from controlplane.domain.quotas.claims import ClaimState, GangShape
from tests.integration.company import Company
from tests.integration.quotas.sharing import Sharing, claim_of
from tests.integration.threads import at_once, raised


@pytest.fixture(autouse=True)
def limit(settings: Settings) -> None:
    settings.NINEFOLD_PENDING_PER_USER = 2


def test_one_more_pending_claim_is_refused_with_who_how_many_and_the_limit(
    company: Company,
) -> None:
    sharing = Sharing.of(company)
    jobs = [sharing.asked(name=f"j{each}") for each in range(2)]
    user = company.engineer.username
    with pytest.raises(
        SpecRefused, match=f"user {user} has 2 pending claims and submits 1 more; the limit is 2"
    ):
        sharing.asked(name="j2")
    assert Job.objects.count() == 2, "nothing is left of what was refused"

    Claim.objects.filter(pk=claim_of(jobs[0]).pk).update(state=ClaimState.RELEASED)
    assert claim_of(sharing.asked(name="j3")).state == ClaimState.PENDING


def test_a_claim_that_resumes_after_an_eviction_is_not_limited(company: Company) -> None:
    sharing = Sharing.of(company)
    claims = [sharing.claim(sharing.lender, user=company.engineer) for _ in range(2)]
    request = services.ClaimRequest(
        owner=("attempt", "again"),
        team=company.team,
        queue=sharing.lender,
        shape=GangShape.from_json(claims[0].shape),
        chips=["cpu"],
        work=services.ClaimWorkload(kind="job", uid="again", name="again", user=company.engineer),
        terms=services.ClaimTerms(in_line_since=company.at - timedelta(hours=1)),
    )
    (again,) = services.claims_create(requests=[request])
    assert again.state == ClaimState.PENDING


def test_without_limit_or_user_nothing_is_refused(company: Company, settings: Settings) -> None:
    sharing = Sharing.of(company)
    for _ in range(3):
        sharing.claim(sharing.lender)
    settings.NINEFOLD_PENDING_PER_USER = 0
    for _ in range(3):
        sharing.claim(sharing.lender, user=company.engineer)


def test_concurrent_submissions_do_not_exceed_the_limit_together(
    committed_company: Company,
) -> None:
    sharing = Sharing.of(committed_company)

    def submit() -> Claim:
        return sharing.claim(sharing.lender, user=committed_company.engineer)

    outcomes = at_once(submit, submit, submit, submit)
    assert raised(outcomes, services.PendingLimitExceeded) == 2
    assert Claim.objects.count() == 2
