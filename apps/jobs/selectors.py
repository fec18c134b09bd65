"""Questions about jobs and attempts."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery

from apps.accounts import selectors as accounts
from apps.fleet import selectors as fleet
from apps.jobs.models import Attempt, Job
from apps.models import selectors as registry
from apps.quotas import selectors as quotas
from apps.quotas.models import Claim
from controlplane.domain.claims import ClaimState
from controlplane.domain.jobs import AttemptState, JobState
from controlplane.ports import registry as ports
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.clusters import ClusterError, LogChunk
from controlplane.ports.engines import ROLES, Engine, Task

OWNER_KIND = "attempt"


def jobs_visible(user: accounts.Person) -> QuerySet[Job]:
    return Job.objects.filter(team__in=accounts.teams_of(user)).select_related(
        "team",
        "created_by",
        "model_version__line",
        "dataset_version__dataset",
        "queue",
    )


def jobs_with_newest_attempt(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """With ``message`` (what goes on, or why it waits) and ``progress`` of the newest attempt."""
    newest = Attempt.objects.filter(job=OuterRef("pk")).order_by("-number")
    return jobs.annotate(
        message=Subquery(newest.values("message")[:1]),
        progress=Subquery(newest.values("progress")[:1]),
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


def curve_of(job: Job, *, after: int = -1) -> list[dict[str, Any]]:
    """Points of all attempts with a step greater than ``after``, by step; a later attempt wins."""
    by_step: dict[int, dict[str, Any]] = {}
    rows = (
        job.attempts.filter(points__step__gt=after)
        .order_by("number", "points__step")
        .values_list("points__step", "points__values")
    )
    for step, values in rows:
        by_step[step] = {"step": step, **values}
    return [by_step[step] for step in sorted(by_step)]


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


def waiting_claim(job: Job) -> Claim | None:
    """The claim for which the job waits; None unless it waits for cards."""
    claim = claim_of(latest_attempt(job)) if job.state == JobState.WAITING else None
    return claim if claim is not None and claim.state == ClaimState.PENDING else None


def job_outputs(job: Job) -> registry.Outputs:
    attempts = list(job.attempts.values_list("uid", flat=True))
    return registry.outputs_of(job_uid=job.uid, attempt_uids=attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDescription:
    """One field of an engine's spec, for forms and readers of the API."""

    name: str
    label: str
    help: str
    kind: str
    #: It has no default.
    required: bool
    default: Any
    least: float | None
    most: float | None
    choices: tuple[str, ...]
    #: Of a group.
    fields: tuple[FieldDescription, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDescription:
    name: str
    #: Of the software environment that it runs in.
    environment: str
    tasks: dict[str, tuple[FieldDescription, ...]]


def engines() -> list[EngineDescription]:
    """Every installed engine. An engine that describes no fields takes what its ``check`` accepts."""
    return [_engine(ports.engine(name)) for name in ports.engine_names()]


def _engine(engine: Engine) -> EngineDescription:
    described = getattr(engine, "fields", None)
    return EngineDescription(
        name=engine.name,
        environment=engine.environment().name,
        tasks={
            task.value: _fields(described(task), engine.normalise(task, {})) if described else ()
            for task in sorted(engine.tasks)
        },
    )


def _fields(fields: Sequence[Any], defaults: Mapping[str, Any]) -> tuple[FieldDescription, ...]:
    return tuple(
        FieldDescription(
            name=field.name,
            label=field.label,
            help=field.help,
            kind=str(field.kind),
            # The engine fills what it knows a default for.
            required=field.name not in defaults,
            default=defaults.get(field.name),
            least=field.least,
            most=field.most,
            choices=field.choices,
            fields=_fields(field.fields, defaults.get(field.name) or {}),
        )
        for field in fields
    )
