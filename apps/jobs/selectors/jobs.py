"""Which jobs there are, why they wait, what they made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from django.db.models import OuterRef, QuerySet, Subquery

from apps.accounts import selectors as accounts
from apps.accounts.models import User
from apps.jobs.models import Attempt, Job, SavedFilter
from apps.jobs.selectors.attempts import claim_of, latest_attempt
from apps.models import selectors as registry
from apps.quotas.models import Claim
from controlplane.domain.claims import ClaimState
from controlplane.domain.jobs import JobState

#: Counting jobs of one state stops here.
MOST_COUNTED = 1000


def jobs_visible(user: accounts.Person) -> QuerySet[Job]:
    return Job.objects.filter(team__in=accounts.teams_of(user)).select_related(
        "team",
        "created_by",
        "model_version__line",
        "dataset_version__dataset",
        "queue",
    )


def jobs_with_newest_attempt(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """With ``message`` (what goes on, or why it waits), ``progress``, ``reported_at`` and ``began_at``
    of the newest attempt."""
    newest = Attempt.objects.filter(job=OuterRef("pk")).order_by("-number")
    return jobs.annotate(
        message=Subquery(newest.values("message")[:1]),
        progress=Subquery(newest.values("progress")[:1]),
        reported_at=Subquery(newest.values("reported_at")[:1]),
        began_at=Subquery(newest.values("started_at")[:1]),
    )


def jobs_by_state(jobs: QuerySet[Job]) -> Mapping[str, int]:
    """How many of them are in each state; ``MOST_COUNTED + 1`` means more than ``MOST_COUNTED``."""
    plain = jobs.select_related(None).order_by()
    first, *others = (
        plain.filter(state=state).values_list("state", flat=True)[: MOST_COUNTED + 1]
        for state in JobState
    )
    return Counter(first.union(*others, all=True))


def saved_filters(user: accounts.Person) -> QuerySet[SavedFilter]:
    """Their own, by name."""
    if not isinstance(user, User):
        return SavedFilter.objects.none()
    return SavedFilter.objects.filter(owner=user)


def waiting_claim(job: Job) -> Claim | None:
    """The claim for which the job waits; None unless it waits for cards."""
    claim = claim_of(latest_attempt(job)) if job.state == JobState.WAITING else None
    return claim if claim is not None and claim.state == ClaimState.PENDING else None


def job_outputs(job: Job) -> registry.Outputs:
    attempts = list(job.attempts.values_list("uid", flat=True))
    return registry.outputs_of(job_uid=job.uid, attempt_uids=attempts)
