"""Questions about single attempts."""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings
from django.db.models import QuerySet

from apps.jobs.models import Attempt, Job
from apps.quotas import selectors as quotas
from apps.quotas.models import Claim
from controlplane.domain.jobs import AttemptState

OWNER_KIND = "attempt"
#: What people know its claims as.
WORK_KIND = "job"


def latest_attempt(job: Job) -> Attempt:
    return job.attempts.select_related("cluster").order_by("-number")[0]


def claim_of(attempt: Attempt) -> Claim | None:
    return quotas.claim_of(kind=OWNER_KIND, uid=attempt.uid)


def attempt_token(attempt: Attempt) -> str:
    """Derived, not stored: rendering the Launch again gives the same token."""
    key = settings.SECRET_KEY.encode()
    return hmac.new(key, f"attempt:{attempt.uid}".encode(), hashlib.sha256).hexdigest()


def attempt_by_token(*, uid: str, token: str) -> Attempt | None:
    """The attempt, if the token is its own and it can still report."""
    attempt = Attempt.objects.select_related("job").filter(uid=uid).first()
    if attempt is None or not hmac.compare_digest(attempt_token(attempt), token):
        return None
    reporting = (AttemptState.LAUNCHED, AttemptState.RUNNING, AttemptState.STOPPING)
    # The process may report before the loop has recorded that it was launched.
    return attempt if attempt.state in (AttemptState.ADMITTED, *reporting) else None


def attempts_of(job: Job) -> QuerySet[Attempt]:
    """Every run of it, the first one first."""
    return job.attempts.select_related("continues").order_by("number")


def attempt_numbered(job: Job, number: int | None) -> Attempt:
    """The attempt of that number; None means the newest.

    :raises Attempt.DoesNotExist: if there is none.
    """
    if number is None:
        return latest_attempt(job)
    return job.attempts.select_related("cluster", "job").get(number=number)


def attempt_fresh(attempt: Attempt) -> Attempt:
    """The attempt as it is now."""
    return Attempt.objects.select_related("cluster", "job").get(pk=attempt.pk)
