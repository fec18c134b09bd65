"""The lives of jobs and attempts: every move of their state machines passes here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.selectors import (
    PermissionRefused,
    is_company_administrator,
    require,
    roles_of,
)
from apps.accounts.services import audit
from apps.jobs.models import (
    Attempt,
    AttemptTransition,
    Job,
    JobTransition,
)
from apps.jobs.selectors import OWNER_KIND, WORK_KIND
from apps.jobs.services.chips import equal_chips
from apps.jobs.services.plans import replicas_of
from apps.jobs.services.requests import (
    JobRequest,
    Settled,
    SpecRefused,
    inputs_gone,
    job_settle,
)
from apps.jobs.services.secret_variables import (
    secret_variables_missing,
    secret_variables_store,
)
from apps.models.services.storage_charges import storage_check_open
from apps.quotas import selectors as quotas_selectors
from apps.quotas import services as quotas
from apps.quotas.models import Queue
from controlplane.domain.claims import GangShape, RoleShape
from controlplane.domain.fields import Finding
from controlplane.domain.jobs import (
    ATTEMPT,
    ENDED_JOB_STATES,
    JOB,
    AttemptEvent,
    JobEvent,
    JobState,
)
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.permissions import Permission, allows
from controlplane.domain.resources import Bytes, Millicpu, Resources
from controlplane.domain.retries import RetryPolicy
from controlplane.domain.storage import StorageQuotaExceeded
from controlplane.outbox.messages import publish
from controlplane.persistence.models import new_uid
from controlplane.persistence.moves import LeaseLost, move
from controlplane.ports.engines import ROLES, Task


@transaction.atomic
def job_submit(*, actor: User, team: Team, request: JobRequest) -> Job:
    """The new job, waiting, with its first attempt and claim.

    :raises SpecRefused: if anything is wrong with it; nothing is kept then.
    """
    settled = job_settle(request)
    findings = [*settled.findings, *_check_storage(team), *_check_queue(request.queue)]
    if request.output_shared and not is_company_administrator(actor):
        message = "only an administrator of the company can share a model with every team"
        findings.append(Finding(field="output_shared", message=message))
    if request.priority > 0 and not allows(roles_of(actor, team), Permission.MANAGE_QUEUES):
        message = "only a queue admin of the team can ask for more than 0; others wait their turn"
        findings.append(Finding(field="priority", message=message))
    if findings:
        raise SpecRefused(findings)
    chips = [chip.name for chip in settled.chips]
    job = Job.objects.create(
        team=team,
        created_by=actor,
        name=request.name.strip(),
        kind=request.kind,
        engine=request.engine,
        spec=dict(settled.spec or {}),
        model_version=request.model_version,
        dataset_version=request.dataset_version,
        code=request.code,
        output_name=request.output_name,
        output_shared=request.output_shared,
        queue=request.queue,
        chips=chips,
        asked_chips=list(request.chips) if list(request.chips) != chips else None,
        shape=_shape(request, settled).as_json(),
        priority=request.priority,
        run_seconds=request.run_seconds,
        retry_policy=RetryPolicy.from_json(request.retry_policy).as_json(),
        state_reason="waiting for cards",
    )
    secret_variables_store(job=job, variables=request.secret_variables)
    audit(actor=actor, action="job.submit", team=team, uid=job.uid, name=job.name, kind=job.kind)
    attempt_create(job=job, continues=None)
    return job


def _shape(request: JobRequest, settled: Settled) -> GangShape:
    replicas, cards = replicas_of(settled.chips, request.cards)
    limits = Resources(cpu=Millicpu(cards * 1000), memory=Bytes(request.memory))
    role = ROLES[Task(request.kind)]
    return GangShape(roles=(RoleShape(name=role, replicas=replicas, cards=cards, limits=limits),))


def _check_storage(team: Team) -> list[Finding]:
    """There has to be room for what it will make, of which nobody knows yet how much that is."""
    try:
        storage_check_open(team=team)
    except StorageQuotaExceeded as full:
        return [Finding(field="team", message=str(full))]
    return []


def _check_queue(queue: Queue) -> list[Finding]:
    refusal = quotas_selectors.intake_refusal(queue)
    return [Finding(field="queue", message=refusal)] if refusal else []


def attempt_create(*, job: Job, continues: Attempt | None) -> Attempt:
    """The next attempt, with a claim. Call it in the transaction that makes it necessary.

    :raises SpecRefused: if the queue takes nothing new.
    """
    last = job.attempts.order_by("-number").first()
    attempt = Attempt(
        job=job,
        number=last.number + 1 if last is not None else 1,
        continues=continues,
        overrides=last.overrides if last is not None else None,
    )
    try:
        (claim,) = quotas.claims_request(requests=(request_of(attempt, in_line_since=None),))
    except (quotas.QueueTakesNothing, quotas.PendingLimitExceeded) as refusal:
        raise SpecRefused([Finding(field="queue", message=str(refusal))]) from None
    attempt.claim_uid = claim.uid
    attempt.save(force_insert=True)
    return attempt


@transaction.atomic
def attempt_request_claim(*, attempt: Attempt) -> None:
    """Request the claim of a retry whose back-off is over, with the queue position of the attempt before.

    :raises LeaseLost: if another worker has the attempt now; nothing is requested then.
    """
    before = attempt.job.attempts.get(number=attempt.number - 1)
    since = quotas_selectors.in_line_since_each([before.claim_uid])[before.claim_uid]
    (claim,) = quotas.claims_request(requests=(request_of(attempt, in_line_since=since),))
    rows = Attempt.objects.filter(pk=attempt.pk, lease_token=attempt.lease_token, claim_uid="")
    if not rows.update(claim_uid=claim.uid, message="waiting for cards"):
        raise LeaseLost(str(attempt))
    Job.objects.filter(pk=attempt.job_id).update(state_reason="waiting for cards")


def request_of(attempt: Attempt, *, in_line_since: datetime | None) -> quotas.Request:
    """Every job may be stopped for others: what can save goes on from there, the rest is done again.

    :param in_line_since: of the attempt whose place in line it has; the job was not asked for anew then.
    """
    job = attempt.job
    return quotas.Request(
        owner=(OWNER_KIND, attempt.uid),
        team=job.team,
        queue=job.queue,
        shape=GangShape.from_json(job.shape),
        chips=job.chips,
        priority=job.priority,
        work=quotas.Work(kind=WORK_KIND, uid=job.uid, name=job.name, person=job.created_by),
        terms=quotas.Terms(
            preemptible=True,
            runtime=None if job.run_seconds is None else timedelta(seconds=job.run_seconds),
            equal_chips=equal_chips(job.asked_chips or job.chips, job.chips),
            in_line_since=in_line_since,
            continues=in_line_since is not None,
        ),
    )


@transaction.atomic
def job_cancel(*, job: Job, actor: User, at: datetime) -> bool:
    """Ask for the end of a job. Says whether this request was the first.

    :raises IllegalTransition: if the job has ended already.
    """
    row = Job.objects.select_for_update(no_key=True).get(pk=job.pk)
    if not JOB.allows(JobState(row.state), JobEvent.CANCEL):
        raise IllegalTransition(machine=JOB.name, state=row.state, event=JobEvent.CANCEL)
    if row.cancel_requested_at is not None:
        return False
    row.cancel_requested_at = at
    row.cancel_requested_by = actor.username
    row.save(update_fields=["cancel_requested_at", "cancel_requested_by"])
    audit(actor=actor, action="job.cancel", team=row.team, uid=row.uid, name=row.name)
    for attempt in row.attempts.exclude(state__in=ATTEMPT.final):
        publish("attempt.changed", attempt_uid=attempt.uid)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOutcome:
    job: Job
    #: Why it was not cancelled; empty where it was asked to end.
    refusal: str


def jobs_cancel(*, jobs: Iterable[Job], actor: User, at: datetime) -> list[CancelOutcome]:
    """Ask for the end of each; one that cannot be cancelled does not keep the others."""
    outcomes = []
    for job in jobs:
        refusal = ""
        try:
            require(actor, Permission.RUN, team=job.team)
            job_cancel(job=job, actor=actor, at=at)
        except (IllegalTransition, PermissionRefused) as refused:
            refusal = str(refused)
        outcomes.append(CancelOutcome(job=job, refusal=refusal))
    return outcomes


@transaction.atomic
def job_retry(*, job: Job, actor: User, at: datetime) -> Attempt:
    """A new attempt that goes on from the newest checkpoint.

    :raises IllegalTransition: if it has not failed and was not cancelled (two people pressing the
        button get one retry and one of these).
    :raises SpecRefused: if something that it reads has been deleted, or its queue takes nothing new.
    """
    row = Job.objects.select_for_update(no_key=True).get(pk=job.pk)
    if findings := (*inputs_gone(row), *secret_variables_missing(row)):
        raise SpecRefused(findings)
    job_move(
        row,
        JobEvent.RETRY,
        at=at,
        reason="waiting for cards",
        actor=actor.username,
        cancel_requested_at=None,
        cancel_requested_by="",
        ended_at=None,
    )
    last = row.attempts.order_by("-number")[0]
    audit(actor=actor, action="job.retry", team=row.team, uid=row.uid, name=row.name)
    return attempt_create(job=row, continues=resumable(last))


def resumable(attempt: Attempt) -> Attempt | None:
    """The newest attempt, from this one back, that has run and whose working folder is still there."""
    current: Attempt | None = attempt
    while current is not None and not _has_checkpoints(current):
        current = current.continues
    return current


def _has_checkpoints(attempt: Attempt) -> bool:
    """One that never ran has not taken over what it was to go on from."""
    ran = attempt.started_at is not None or attempt.reported_at is not None
    return ran and attempt.removed_at is None


@transaction.atomic
def job_move(
    job: Job, event: JobEvent, *, at: datetime, reason: str, actor: str = "", **changes: Any
) -> None:
    """Move it, with the news if that ends it."""
    move(
        job,
        JOB,
        event,
        into=JobTransition,
        at=at,
        reason=reason,
        actor=actor,
        state_reason=reason,
        **changes,
    )
    if is_over(job):
        publish(
            "job.ended",
            event_uid=new_uid(),
            job_uid=job.uid,
            state=str(job.state),
            reason=reason,
            at=at.isoformat(),
        )


def attempt_move(
    attempt: Attempt, event: AttemptEvent, *, at: datetime, reason: str, **changes: Any
) -> None:
    """Under the attempt's row lease, so that a slow worker cannot write over its successor."""
    move(
        attempt,
        ATTEMPT,
        event,
        into=AttemptTransition,
        at=at,
        reason=reason,
        lease_token=attempt.lease_token,
        message=reason,
        **changes,
    )


def log_keep(*, attempt: Attempt, message: str, **archived: Any) -> None:
    """Note where it ended and what of it is kept, though its end is not decided about yet."""
    changes = {"message": message, **archived}
    if any(getattr(attempt, name) != value for name, value in changes.items()):
        rows = Attempt.objects.filter(pk=attempt.pk, lease_token=attempt.lease_token)
        rows.update(**changes)


def is_over(job: Job) -> bool:
    return JobState(job.state) in ENDED_JOB_STATES
