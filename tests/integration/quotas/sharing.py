"""Two queues that share the company's cards: one has a guarantee, the other borrows while it is idle."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from apps.accounts.models import User
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors import latest_attempt
from apps.quotas import services
from apps.quotas.models import Claim, Queue
from controlplane.domain.common.resources import Bytes, Resources
from controlplane.domain.quotas.claims import ClaimState, GangShape, RoleShape
from tests.integration.company import Company, entitle


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    company: Company
    lender: Queue
    batch: Queue

    @classmethod
    def of(cls, company: Company, *, guaranteed: int = 2) -> Sharing:
        lender = Queue.objects.create(name="owed")
        entitle(lender, guaranteed=guaranteed)
        return cls(company=company, lender=lender, batch=Queue.objects.create(name="batch"))

    def borrowing(self, name: str = "borrower", cards: int = 2) -> Job:
        """A running job of the queue without guarantee."""
        job, _ = self.company.running(name=name, queue=self.batch, cards=cards)
        return job

    def asked(self, name: str = "owner", cards: int = 2) -> Job:
        """A pending job of the queue with the guarantee."""
        return self.company.submit(name, queue=self.lender, cards=cards)

    def claim(
        self, queue: Queue, *, cards: int = 1, user: User | None = None, memory: int = 0
    ) -> Claim:
        """A pending, preemptible claim without a real owner.

        :param memory: in bytes.
        """
        limits = Resources(memory=Bytes(memory))
        role = RoleShape(name="trainer", replicas=1, cards=cards, limits=limits)
        work = uuid.uuid4().hex
        request = services.ClaimRequest(
            owner=("attempt", work),
            team=self.company.team,
            queue=queue,
            shape=GangShape(roles=(role,)),
            chips=["cpu"],
            work=services.ClaimWorkload(kind="job", uid=work, name=work, user=user),
            terms=services.ClaimTerms(preemptible=True),
        )
        return services.claims_create(requests=[request])[0]


def claim_of(job: Job) -> Claim:
    """That of its newest attempt."""
    return Claim.objects.get(uid=latest_attempt(job).claim_uid)


def state_of(job: Job) -> ClaimState:
    return ClaimState(claim_of(job).state)


def attempts_of(job: Job) -> list[Attempt]:
    return list(job.attempts.order_by("number"))
