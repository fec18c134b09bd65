"""Lifecycle of jobs and attempts: submit, cancel, retry, and every single transition of their state machines."""

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
    require_permission,
    roles_of,
)
from apps.accounts.services import record_audit_entry
from apps.jobs.models import (
    Attempt,
    AttemptTransition,
    Job,
    JobTransition,
)
from apps.jobs.selectors import OWNER_KIND, WORK_KIND
from apps.jobs.services.job_requests import (
    JobRequest,
    ResolvedRequest,
    SpecRefused,
    deleted_input_findings,
    job_request_resolve,
)
from apps.jobs.services.resource_resolution import interchangeable_chip_count
from apps.jobs.services.secret_variables import (
    secret_variables_missing,
    secret_variables_store,
)
from apps.models.services.artifact_storage import check_storage_quota_not_exhausted
from apps.quotas import selectors as quotas_selectors
from apps.quotas import services as quotas
from apps.quotas.models import Queue
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.jobs.lifecycle import (
    ATTEMPT,
    ENDED_JOB_STATES,
    JOB,
    AttemptEvent,
    JobEvent,
    JobState,
)
from controlplane.domain.jobs.parallelism import node_and_card_counts
from controlplane.domain.jobs.retries import RetryPolicy
from controlplane.domain.quotas.claims import GangShape, RoleShape
from controlplane.domain.storage.team_storage import StorageQuotaExceeded
from controlplane.outbox.messages import publish_message
from controlplane.persistence.models import new_uid
from controlplane.persistence.state_transitions import LeaseLost, apply_transition
from controlplane.ports.engines import ROLES, EngineTask


@transaction.atomic
def job_submit(*, actor: User, team: Team, request: JobRequest) -> Job:
    """Create a job with its first attempt and claim.

    :raises SpecRefused: if anything is wrong with the request; nothing is stored then.
    """
    resolved = job_request_resolve(request)
    findings = [*resolved.findings, *_check_storage_quota(team), *_check_queue(request.queue)]
    if request.output_shared and not is_company_administrator(actor):
        message = Reason(
            "job.output_shared.not_permitted",
            "only an administrator of the company can share a model with every team",
        )
        findings.append(FieldFinding(field="output_shared", message=message))
    if request.priority > 0 and not roles_grant(roles_of(actor, team), Permission.MANAGE_QUEUES):
        message = Reason(
            "job.priority.not_permitted",
            "only an administrator or a queue admin of the team can set a priority above 0",
        )
        findings.append(FieldFinding(field="priority", message=message))
    if findings:
        raise SpecRefused(findings)
    chips = [chip.name for chip in resolved.chips]
    job = Job.objects.create(
        team=team,
        created_by=actor,
        name=request.name.strip(),
        kind=request.kind,
        engine=request.engine,
        spec=dict(resolved.spec or {}),
        model_version=request.model_version,
        dataset_version=request.dataset_version,
        code=request.code,
        output_name=request.output_name,
        output_shared=request.output_shared,
        queue=request.queue,
        chips=chips,
        asked_chips=list(request.chips) if list(request.chips) != chips else None,
        shape=_gang_shape(request, resolved).as_json(),
        priority=request.priority,
        priority_class=quotas_selectors.priority_class_of_value(request.priority),
        run_seconds=request.run_seconds,
        retry_policy=RetryPolicy.from_json(request.retry_policy).as_json(),
        state_reason=Reason("claim.pending.cards", "waiting for cards"),
    )
    secret_variables_store(job=job, variables=request.secret_variables)
    record_audit_entry(job, actor=actor, action="job.submit", team=team, kind=job.kind)
    attempt_create(job=job, continues=None)
    return job


def _gang_shape(request: JobRequest, resolved: ResolvedRequest) -> GangShape:
    replicas, cards = node_and_card_counts(resolved.chips, request.cards)
    limits = Resources(cpu=Millicpu(cards * 1000), memory=Bytes(request.memory))
    role = ROLES[EngineTask(request.kind)]
    return GangShape(roles=(RoleShape(name=role, replicas=replicas, cards=cards, limits=limits),))


def _check_storage_quota(team: Team) -> list[FieldFinding]:
    """Refuse a team whose storage quota is exhausted: the size of the outputs is not known yet."""
    try:
        check_storage_quota_not_exhausted(team=team)
    except StorageQuotaExceeded as full:
        return [FieldFinding(field="team", message=str(full))]
    return []


def _check_queue(queue: Queue) -> list[FieldFinding]:
    refusal = quotas_selectors.queue_closed_reason(queue)
    return [FieldFinding(field="queue", message=refusal)] if refusal else []


def attempt_create(*, job: Job, continues: Attempt | None) -> Attempt:
    """Create the next attempt of the job and its claim; call it in the transaction that requires it.

    :raises SpecRefused: if the queue accepts no new work.
    """
    last = job.attempts.order_by("-number").first()
    attempt = Attempt(
        job=job,
        number=last.number + 1 if last is not None else 1,
        continues=continues,
        overrides=last.overrides if last is not None else None,
    )
    try:
        (claim,) = quotas.claims_create(
            requests=(claim_request_of_attempt(attempt, in_line_since=None),)
        )
    except (quotas.QueueNotAcceptingClaims, quotas.PendingLimitExceeded) as refusal:
        raise SpecRefused([FieldFinding(field="queue", message=str(refusal))]) from None
    attempt.claim_uid = claim.uid
    attempt.save(force_insert=True)
    return attempt


@transaction.atomic
def attempt_request_claim(*, attempt: Attempt) -> None:
    """Request the claim of a retry whose back-off is over, with the queue position of the previous attempt.

    :raises LeaseLost: if another worker leases the attempt now; nothing is requested then.
    """
    before = attempt.job.attempts.get(number=attempt.number - 1)
    since = quotas_selectors.queued_since_by_claim([before.claim_uid])[before.claim_uid]
    (claim,) = quotas.claims_create(
        requests=(claim_request_of_attempt(attempt, in_line_since=since),)
    )
    rows = Attempt.objects.filter(pk=attempt.pk, lease_token=attempt.lease_token, claim_uid="")
    if not rows.update(
        claim_uid=claim.uid, message=Reason("claim.pending.cards", "waiting for cards")
    ):
        raise LeaseLost(str(attempt))
    Job.objects.filter(pk=attempt.job_id).update(
        state_reason=Reason("claim.pending.cards", "waiting for cards")
    )


def claim_request_of_attempt(
    attempt: Attempt, *, in_line_since: datetime | None
) -> quotas.ClaimRequest:
    """The claim request of an attempt. Every job is preemptible: it continues from a checkpoint or restarts.

    :param in_line_since: when the previous attempt was queued, whose position it keeps; None if there is none.
    """
    job = attempt.job
    return quotas.ClaimRequest(
        owner=(OWNER_KIND, attempt.uid),
        team=job.team,
        queue=job.queue,
        shape=GangShape.from_json(job.shape),
        chips=job.chips,
        priority=job.priority,
        work=quotas.ClaimWorkload(kind=WORK_KIND, uid=job.uid, name=job.name, user=job.created_by),
        terms=quotas.ClaimTerms(
            preemptible=True,
            runtime=None if job.run_seconds is None else timedelta(seconds=job.run_seconds),
            equal_chips=interchangeable_chip_count(job.asked_chips or job.chips, job.chips),
            in_line_since=in_line_since,
            continues=in_line_since is not None,
        ),
    )


@transaction.atomic
def job_cancel(*, job: Job, actor: User, at: datetime) -> bool:
    """Request the cancellation of a job; return whether this request is the first.

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
    record_audit_entry(row, actor=actor, action="job.cancel")
    for attempt in row.attempts.exclude(state__in=ATTEMPT.final):
        publish_message("attempt.changed", attempt_uid=attempt.uid)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOutcome:
    job: Job
    #: Why it was not cancelled; empty if its cancellation was requested.
    refusal: str


def jobs_cancel(*, jobs: Iterable[Job], actor: User, at: datetime) -> list[CancelOutcome]:
    """Request the cancellation of each; one that cannot be cancelled does not affect the others."""
    outcomes = []
    for job in jobs:
        refusal = ""
        try:
            require_permission(actor, Permission.RUN, team=job.team)
            job_cancel(job=job, actor=actor, at=at)
        except (IllegalTransition, PermissionRefused) as refused:
            refusal = str(refused)
        outcomes.append(CancelOutcome(job=job, refusal=refusal))
    return outcomes


@transaction.atomic
def job_retry(*, job: Job, actor: User, at: datetime) -> Attempt:
    """Create an attempt that continues from the newest checkpoint.

    :raises IllegalTransition: if the job has not failed and was not cancelled (of two concurrent calls, one
        creates the attempt and the other raises).
    :raises SpecRefused: if one of its inputs has been deleted, or its queue accepts no new work.
    """
    row = Job.objects.select_for_update(no_key=True).get(pk=job.pk)
    if findings := (*deleted_input_findings(row), *secret_variables_missing(row)):
        raise SpecRefused(findings)
    job_transition(
        row,
        JobEvent.RETRY,
        at=at,
        reason=Reason("claim.pending.cards", "waiting for cards"),
        actor=actor.username,
        cancel_requested_at=None,
        cancel_requested_by="",
        ended_at=None,
    )
    last = row.attempts.order_by("-number")[0]
    record_audit_entry(row, actor=actor, action="job.retry")
    return attempt_create(job=row, continues=resumable_attempt(last))


def resumable_attempt(attempt: Attempt) -> Attempt | None:
    """The newest attempt, from this one back, that has run and whose working folder still exists."""
    current: Attempt | None = attempt
    while current is not None and not _has_checkpoints(current):
        current = current.continues
    return current


def _has_checkpoints(attempt: Attempt) -> bool:
    """Whether it ran and its folder exists; one that never ran has no copy of earlier checkpoints."""
    ran = attempt.started_at is not None or attempt.reported_at is not None
    return ran and attempt.removed_at is None


@transaction.atomic
def job_transition(
    job: Job, event: JobEvent, *, at: datetime, reason: str, actor: str = "", **changes: Any
) -> None:
    """Apply the event to the job; publish ``job.ended`` if that ends it."""
    apply_transition(
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
    if has_job_ended(job):
        publish_message(
            "job.ended",
            event_uid=new_uid(),
            job_uid=job.uid,
            state=str(job.state),
            reason=reason,
            at=at.isoformat(),
        )


def attempt_transition(
    attempt: Attempt, event: AttemptEvent, *, at: datetime, reason: str, **changes: Any
) -> None:
    """Apply the event under the attempt's row lease, so that a slow worker cannot overwrite its successor."""
    apply_transition(
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


def attempt_log_store(*, attempt: Attempt, message: str, **archived: Any) -> None:
    """Store the message and the archived log of an exited attempt whose state is not decided yet."""
    changes = {"message": message, **archived}
    if any(getattr(attempt, name) != value for name, value in changes.items()):
        rows = Attempt.objects.filter(pk=attempt.pk, lease_token=attempt.lease_token)
        rows.update(**changes)


def has_job_ended(job: Job) -> bool:
    return JobState(job.state) in ENDED_JOB_STATES
