"""Jobs, their attempts, claims and outputs, and saved filters of the job list."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Mapping

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery

from apps.accounts import selectors as accounts
from apps.accounts.models import User
from apps.jobs.models import Attempt, AttemptCheckpoint, Job, SavedFilter
from apps.models import selectors as registry
from apps.quotas import selectors as quotas
from apps.quotas.models import Claim
from controlplane.domain.jobs.lifecycle import AttemptState, JobState
from controlplane.domain.quotas.claims import ClaimState

#: Upper bound when jobs of one state are counted.
MAX_COUNTED = 1000


def jobs_visible(user: accounts.RequestUser) -> QuerySet[Job]:
    return Job.objects.filter(team__in=accounts.teams_visible(user)).select_related(
        "team",
        "created_by",
        "model_version__line",
        "dataset_version__dataset",
        "queue",
        "priority_class",
    )


def jobs_with_latest_attempt(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """With ``message``, ``progress``, ``reported_at`` and ``began_at`` (its start) of the newest attempt."""
    newest = Attempt.objects.filter(job=OuterRef("pk")).order_by("-number")
    return jobs.annotate(
        message=Subquery(newest.values("message")[:1]),
        progress=Subquery(newest.values("progress")[:1]),
        reported_at=Subquery(newest.values("reported_at")[:1]),
        began_at=Subquery(newest.values("started_at")[:1]),
    )


def jobs_by_state(jobs: QuerySet[Job]) -> Mapping[str, int]:
    """Number of jobs by state; ``MAX_COUNTED + 1`` means more than ``MAX_COUNTED``."""
    plain = jobs.select_related(None).order_by()
    first, *others = (
        plain.filter(state=state).values_list("state", flat=True)[: MAX_COUNTED + 1]
        for state in JobState
    )
    return Counter(first.union(*others, all=True))


def saved_filters(user: accounts.RequestUser) -> QuerySet[SavedFilter]:
    """The user's own saved filters, by name."""
    if not isinstance(user, User):
        return SavedFilter.objects.none()
    return SavedFilter.objects.filter(owner=user)


def pending_claim(job: Job) -> Claim | None:
    """The pending claim of a waiting job; None if there is none."""
    claim = attempt_claim(latest_attempt(job)) if job.state == JobState.WAITING else None
    return claim if claim is not None and claim.state == ClaimState.PENDING else None


def job_outputs(job: Job) -> registry.JobOutputs:
    attempts = list(job.attempts.values_list("uid", flat=True))
    return registry.outputs_of_job(job_uid=job.uid, attempt_uids=attempts)


OWNER_KIND = "attempt"
#: Kind of workload that users see for its claims.
WORK_KIND = "job"


def latest_attempt(job: Job) -> Attempt:
    return job.attempts.select_related("cluster").order_by("-number")[0]


def attempt_claim(attempt: Attempt) -> Claim | None:
    return quotas.claim_of_workload(kind=OWNER_KIND, uid=attempt.uid)


def attempt_token(attempt: Attempt) -> str:
    """The attempt's token; derived, not stored, so that rendering the Launch again gives the same one."""
    key = settings.SECRET_KEY.encode()
    return hmac.new(key, f"attempt:{attempt.uid}".encode(), hashlib.sha256).hexdigest()


def attempt_by_token(*, uid: str, token: str) -> Attempt | None:
    """The attempt, if the token is valid for it and it can still report; else None."""
    attempt = Attempt.objects.select_related("job").filter(uid=uid).first()
    if attempt is None or not hmac.compare_digest(attempt_token(attempt), token):
        return None
    reporting = (AttemptState.LAUNCHED, AttemptState.RUNNING, AttemptState.STOPPING)
    # The process may report before the controller has recorded the launch.
    return attempt if attempt.state in (AttemptState.ADMITTED, *reporting) else None


def checkpoints_to_continue(attempt: Attempt) -> QuerySet[AttemptCheckpoint]:
    """Stored checkpoints of the attempt and of those that it continues, directly or not; the newest first."""
    continued = dict(Attempt.objects.filter(job=attempt.job_id).values_list("pk", "continues"))
    chain = [attempt.pk]
    while (earlier := continued.get(chain[-1])) is not None:
        chain.append(earlier)
    return AttemptCheckpoint.objects.filter(attempt__in=chain).order_by("-step", "-pk")


def job_attempts(jobs: QuerySet[Job]) -> QuerySet[Attempt]:
    """All attempts of the jobs, by number."""
    return Attempt.objects.filter(job__in=jobs).select_related("continues").order_by("number")


def attempt_by_number(job: Job, number: int | None) -> Attempt:
    """The attempt of that number, or the newest for None.

    :raises Attempt.DoesNotExist: if there is none.
    """
    if number is None:
        return latest_attempt(job)
    return job.attempts.select_related("cluster", "job").get(number=number)


def reload_attempt(attempt: Attempt) -> Attempt:
    """The attempt, read again from the database."""
    return Attempt.objects.select_related("cluster", "job").get(pk=attempt.pk)
