"""Questions about jobs and attempts."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Count, QuerySet

from apps.accounts import selectors as accounts
from apps.fleet import selectors as fleet
from apps.jobs.models import Attempt, Job
from apps.models import selectors as registry
from apps.quotas import selectors as quotas
from apps.quotas.models import Claim
from controlplane.domain.jobs import AttemptState, JobState
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.clusters import ClusterError, LogChunk
from controlplane.ports.engines import ROLES, Task

OWNER_KIND = "attempt"


def jobs_visible(user: accounts.Person) -> QuerySet[Job]:
    return Job.objects.filter(team__in=accounts.teams_of(user)).select_related(
        "team",
        "created_by",
        "model_version__line",
        "dataset_version__dataset",
        "queue",
    )


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


def attempt_log(attempt: Attempt, *, offset: int, limit: int) -> LogChunk:
    """Up to ``limit`` bytes from ``offset``; negative counts from the end."""
    if attempt.log_digest:
        return _archived(attempt.log_digest, offset=offset, limit=limit)
    if attempt.cluster is None:
        ended = attempt.ended_at is not None
        return LogChunk(content=b"", next_offset=0, complete=ended)
    adapter = fleet.cluster_adapter(attempt.cluster)
    role = ROLES[Task(attempt.job.kind)]
    try:
        return adapter.log(attempt.launch_name, role=role, index=0, offset=offset, limit=limit)
    except ClusterError:
        return LogChunk(content=b"", next_offset=max(0, offset), complete=False)


def _archived(digest: str, *, offset: int, limit: int) -> LogChunk:
    store = registry.artifact_store()
    try:
        size = store.size(digest)
        start = max(0, size + offset) if offset < 0 else min(offset, size)
        with store.open(digest) as log:
            log.seek(start)
            content = log.read(limit)
    except BlobMissing:
        return LogChunk(content=b"", next_offset=0, complete=True)
    end = start + len(content)
    return LogChunk(content=content, next_offset=end, complete=end >= size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Progress points of a job, of all attempts, by step; a later attempt wins over an earlier one."""

    points: tuple[dict[str, Any], ...]

    def series(self, name: str) -> list[tuple[int, float]]:
        return [(point["step"], point[name]) for point in self.points if name in point]


def curve_of(job: Job, *, after: int = -1) -> Curve:
    """Points with a step greater than ``after``."""
    by_step: dict[int, dict[str, Any]] = {}
    rows = (
        job.attempts.filter(points__step__gt=after)
        .order_by("number", "points__step")
        .values_list("points__step", "points__values")
    )
    for step, values in rows:
        by_step[step] = {"step": step, **values}
    return Curve(points=tuple(by_step[step] for step in sorted(by_step)))


def job_counts(user: accounts.Person) -> dict[str, int]:
    """Jobs that they may see, by state."""
    rows = (
        Job.objects.filter(team__in=accounts.teams_of(user))
        .order_by()
        .values_list("state")
        .annotate(count=Count("id"))
    )
    return {**{state.value: 0 for state in JobState}, **dict(rows)}
