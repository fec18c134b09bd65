"""The attempt controller.

Each run leases a batch of rows, reads claims and clusters outside of a transaction, and applies one guarded state
transition per attempt. A run that dies between any two lines is repeated: names of Launches derive from uids,
launching and stopping are idempotent, and registering outputs is keyed by the attempt.

::

    PENDING ─ claim admitted? ─▶ ADMITTED ─ launch ─▶ LAUNCHED ─ observe ─▶ RUNNING ─ observe ─▶ COMPLETING
                                                                                          │ register outputs
                                            STOPPING ─ stop, observe ─▶ STOPPED           ▼
                                                                                      SUCCEEDED
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet, prefetch_related_objects

from apps.jobs import selectors, services
from apps.jobs.models import Attempt, Job
from apps.jobs.reconcilers import attempt_termination, launches
from apps.jobs.reconcilers.attempt_context import (
    AttemptReconcileContext,
    attempt_message_set,
    attempt_reconcile_context,
)
from apps.jobs.services.job_storage import stored_checkpoints_delete
from apps.models.models import ModelVersion
from apps.models.services import job_outputs as registry
from apps.models.services.artifact_storage import RegistrationRefused
from apps.quotas import selectors as quotas_selectors
from apps.quotas import services as quotas
from apps.quotas.models import Claim
from controlplane.domain.common.reasons import Reason, join_reasons
from controlplane.domain.jobs.lifecycle import (
    ATTEMPT,
    AttemptEvent,
    AttemptState,
    JobEvent,
    JobKind,
    JobState,
)
from controlplane.domain.jobs.retries import log_shows_out_of_memory
from controlplane.domain.quantization.schemes import QuantizationVerdict, compare_metrics
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.domain.registry.versions import GateDecision
from controlplane.domain.specs.evaluation import METRICS
from controlplane.persistence.encryption import DecryptionFailed
from controlplane.persistence.leases import (
    keep_leases_renewed,
    lease_rows,
    release_row_lease,
    release_row_leases,
)
from controlplane.ports.artifacts import ArtifactError, BlobMissing, StorageUnavailable
from controlplane.ports.clusters import (
    ExitCause,
    LaunchRefused,
    ObservedLaunch,
    ReplicaPhase,
)

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
BATCH = 32
#: Relations read in the statement that leases the attempts.
_SELECT_RELATED = (
    "cluster",
    "continues",
    "job__team",
    "job__model_version__line",
    "job__model_version__artifact",
    "job__dataset_version__artifact",
    "job__code",
)
#: State of a claim → states of attempts that have not reacted to it yet.
_AFFECTED_STATES: Mapping[ClaimState, Collection[AttemptState]] = {
    ClaimState.ADMITTED: (AttemptState.PENDING,),
    ClaimState.REVOKING: (AttemptState.PENDING, *attempt_termination.STOPPABLE),
}


def attempts_reconcile(*, at: datetime, uids: Collection[str] | None = None) -> int:
    """Reconcile attempts that have not ended, at most one batch; return how many were reconciled.

    :param uids: only these attempts; None means all.
    """
    rows = Attempt.objects.exclude(state__in=ATTEMPT.final)
    return _reconcile_attempts(rows if uids is None else rows.filter(uid__in=uids), at=at)


def attempts_reconcile_for_claim(*, claim_uid: str, at: datetime) -> int:
    """Reconcile the attempt of an admitted or revoked claim, and others whose claims are in the same state.

    A failure that affects many claims sends one message for each of them. The first messages reconcile a batch
    each; the later ones find nothing left to do.

    :return: how many attempts were reconciled.
    """
    claim = Claim.objects.filter(uid=claim_uid).first()
    states = None if claim is None else _AFFECTED_STATES.get(ClaimState(claim.state))
    if claim is None or states is None or not Attempt.objects.filter(claim_uid=claim_uid).exists():
        return 0
    in_same_state = Claim.objects.filter(state=claim.state).values("uid")
    return _reconcile_attempts(
        Attempt.objects.filter(state__in=states, claim_uid__in=in_same_state), at=at
    )


def _reconcile_attempts(rows: QuerySet[Attempt], *, at: datetime) -> int:
    attempts = lease_rows(rows.select_related(*_SELECT_RELATED), limit=BATCH, ttl=LEASE)
    with keep_leases_renewed(attempts, ttl=LEASE):
        _reconcile_leased_attempts(attempts, at=at)
    return len(attempts)


def _reconcile_leased_attempts(attempts: Sequence[Attempt], *, at: datetime) -> None:
    # Logs and messages are masked with their values: read once for the batch.
    prefetch_related_objects([one.job for one in attempts], "secret_variables")
    context = attempt_reconcile_context(attempts, at=at)
    to_stop = [
        one
        for one in attempts
        if one.state in attempt_termination.STOPPABLE
        and attempt_termination.stop_is_requested(one, context)
    ]
    stopping = [one for one in attempts if one.state == AttemptState.STOPPING]
    try:
        # First: an attempt that has to save loses time with each log that is archived before its stop.
        attempt_termination.request_attempt_stop(to_stop, context)
        attempt_termination.confirm_stopped_attempts(stopping, context)
    except Exception:
        log.exception("attempts could not be stopped", extra={"attempts": len(to_stop + stopping)})
    finally:
        release_row_leases((*stopping, *to_stop))
    together = {one.pk for one in (*stopping, *to_stop)}
    for attempt in attempts:
        if attempt.pk in together:
            continue
        try:
            with context.isolate_attempt_errors(attempt):
                if not context.is_unreachable(attempt):
                    STATE_RECONCILERS[AttemptState(attempt.state)](attempt, context)
        finally:
            release_row_lease(attempt)


def _reconcile_pending(attempt: Attempt, context: AttemptReconcileContext) -> None:
    at = context.at
    claim = context.claim(attempt) if attempt.claim_uid else None
    cancelled = attempt.job.cancel_requested_at is not None
    if cancelled and (claim is None or claim.state == ClaimState.PENDING):
        services.attempt_end(
            attempt=attempt,
            event=AttemptEvent.WITHDRAW,
            job_event=JobEvent.CANCEL,
            at=at,
            reason=attempt_termination.cancelled_by_user_reason(attempt),
            release=ReleaseReason.CANCELLED,
        )
    elif claim is None:
        if attempt.starts_after is None or attempt.starts_after <= at:
            services.attempt_request_claim(attempt=attempt)
    elif claim.state in (ClaimState.ADMITTED, ClaimState.REVOKING):
        services.attempt_transition(
            attempt,
            AttemptEvent.ADMIT,
            at=at,
            reason=claim.explanation,
            chip=claim.chip,
            cluster=quotas_selectors.cluster_of_claim(claim),
            admitted_at=at,
        )
        if attempt_termination.stop_is_requested(attempt, context):
            attempt_termination.request_attempt_stop((attempt,), context)
        else:
            _reconcile_admitted(attempt, context)
    else:
        attempt_message_set(attempt, claim.explanation)


def _reconcile_admitted(attempt: Attempt, context: AttemptReconcileContext) -> None:
    at = context.at
    # Read again: reconciling the attempts before this one may have taken a while.
    if not Claim.objects.filter(uid=attempt.claim_uid, state=ClaimState.ADMITTED).exists():
        return
    try:
        launches.start_launch(attempt, claim=context.claim(attempt))
    except StorageUnavailable:
        # The next run tries it again.
        raise
    except (LaunchRefused, ArtifactError, DecryptionFailed, ValueError) as refusal:
        reason = selectors.masked_text(str(refusal), job=attempt.job)
        _fail_attempt(
            attempt,
            at,
            reason=Reason(
                "launch.start.failed", "the workload could not be started: {reason}", reason=reason
            ),
        )
        return
    with transaction.atomic():
        services.attempt_transition(
            attempt, AttemptEvent.LAUNCH, at=at, reason=Reason("launch.state.starting", "starting")
        )
        job = Job.objects.select_for_update(no_key=True).get(pk=attempt.job_id)
        if job.state == JobState.WAITING:
            services.job_transition(
                job, JobEvent.START, at=at, reason=Reason("launch.state.running", "running")
            )


def _reconcile_launched(attempt: Attempt, context: AttemptReconcileContext) -> None:
    observed, at = context.observed(attempt), context.at
    if observed is None:
        _fail_attempt(
            attempt,
            at,
            reason=Reason(
                "launch.state.not_reported", "the cluster no longer reports the workload"
            ),
            exit_cause=ExitCause.LOST,
        )
    elif observed.ended:
        _reconcile_exited_launch(attempt, observed, at)
    else:
        _reconcile_live_launch(attempt, observed, at)


def _reconcile_live_launch(attempt: Attempt, observed: ObservedLaunch, at: datetime) -> None:
    phases = {replica.phase for replica in observed.replicas}
    messages = [replica.message for replica in observed.replicas if replica.message]
    if attempt.state == AttemptState.LAUNCHED and phases == {ReplicaPhase.RUNNING}:
        services.attempt_transition(
            attempt,
            AttemptEvent.RUN,
            at=at,
            reason=Reason("launch.state.running", "running"),
            started_at=at,
        )
    elif attempt.state == AttemptState.LAUNCHED:
        message = messages[0] if messages else "starting"
        attempt_message_set(attempt, selectors.masked_text(message, job=attempt.job))


def _reconcile_exited_launch(attempt: Attempt, observed: ObservedLaunch, at: datetime) -> None:
    """Handle a Launch of which every process has exited."""
    failed = [
        one for one in observed.replicas if one.cause is not ExitCause.FINISHED or one.exit_code
    ]
    # The first replica to exit ended the others; within one second, it is one that did not fail by itself.
    bad = min(
        failed,
        key=lambda one: (
            one.ended_at is None,
            one.ended_at.timestamp() if one.ended_at else 0.0,
            one.cause is ExitCause.FAILED,
        ),
        default=None,
    )
    if bad is None:
        with transaction.atomic():
            services.attempt_transition(
                attempt,
                AttemptEvent.FINISH,
                at=at,
                reason=Reason(
                    "attempt.state.registering_outputs", "registering the outputs of the job"
                ),
                exit_code=0,
            )
            quotas.claim_release(uid=attempt.claim_uid, reason=ReleaseReason.FINISHED, at=at)
        _complete_attempt(attempt, at)
        return
    archived = launches.archive_log(attempt)
    cause = bad.cause or ExitCause.LOST
    if cause is ExitCause.FAILED and log_shows_out_of_memory(archived.get("log_tail", "")):
        cause = ExitCause.OUT_OF_MEMORY
    # Some clusters use the last lines of the log as the message.
    message = selectors.masked_text(bad.message, job=attempt.job)
    reason = message or Reason(
        "launch.state.exited",
        "the process ended with exit code {exit_code}",
        exit_code=bad.exit_code,
    )
    exit_fields = {"exit_code": bad.exit_code, "exit_cause": cause, **archived}
    if cause is ExitCause.OUT_OF_MEMORY:
        _retry_with_smaller_batches(attempt, at, reason=reason, **exit_fields)
    elif services.can_requeue(attempt, cause):
        _requeue_job_of_lost_attempt(attempt, at, reason=reason, **exit_fields)
    elif services.may_be_hardware_failure(
        archived.get("log_tail", ""), ended_at=bad.ended_at, at=at
    ):
        # If it is, its claim is revoked within seconds, and its job continues on other cards.
        message = Reason(
            "attempt.state.hardware_check",
            "{reason}; checking whether the cards have a fault",
            reason=reason,
        )
        services.attempt_log_store(attempt=attempt, message=message, **archived)
    else:
        _retry_by_policy(attempt, at, cause=cause, reason=reason, **exit_fields)


def _retry_by_policy(
    attempt: Attempt, at: datetime, *, cause: ExitCause, reason: str, **exit_fields: Any
) -> None:
    """Retry after a back-off, from the newest checkpoint, if the job's retry policy allows it."""
    decision = services.retry_decision(
        attempt, cause=cause, log_tail=exit_fields.get("log_tail", ""), reason=reason
    )
    if decision.retry is None:
        _fail_attempt(attempt, at, reason=decision.reason, **exit_fields)
        return
    _requeue_job(attempt, at, reason=decision.reason, retry=decision.retry, **exit_fields)


def _retry_with_smaller_batches(
    attempt: Attempt, at: datetime, *, reason: str, **exit_fields: Any
) -> None:
    """Retry with smaller batches, from the newest checkpoint, if the spec allows it."""
    retry = services.out_of_memory_retry(attempt)
    if retry.overrides is None:
        _fail_attempt(attempt, at, reason=join_reasons((reason, retry.reason)), **exit_fields)
        return
    reason = join_reasons((reason, retry.reason))
    _requeue_job(attempt, at, reason=reason, overrides=retry.overrides, **exit_fields)


def _requeue_job_of_lost_attempt(
    attempt: Attempt, at: datetime, *, reason: str, **exit_fields: Any
) -> None:
    """Requeue a job whose attempt was ended by its cluster; it continues from the newest checkpoint."""
    reason = Reason("attempt.state.requeued", "{reason}; waiting for cards again", reason=reason)
    _requeue_job(attempt, at, reason=reason, release=ReleaseReason.FAULT, **exit_fields)


def _requeue_job(
    attempt: Attempt,
    at: datetime,
    *,
    reason: str,
    release: ReleaseReason = ReleaseReason.FINISHED,
    **changes: Any,
) -> None:
    """End the attempt as failed; its job waits for cards again."""
    services.attempt_end(
        attempt=attempt,
        event=AttemptEvent.FAIL,
        job_event=JobEvent.REQUEUE,
        at=at,
        reason=reason,
        release=release,
        **changes,
    )


def _fail_attempt(attempt: Attempt, at: datetime, *, reason: str, **changes: Any) -> None:
    if "log_tail" not in changes:
        changes |= launches.archive_log(attempt)
    services.attempt_end(
        attempt=attempt,
        event=AttemptEvent.FAIL,
        job_event=JobEvent.FAIL,
        at=at,
        reason=reason,
        release=ReleaseReason.FINISHED,
        **changes,
    )


def _reconcile_completing(attempt: Attempt, context: AttemptReconcileContext) -> None:
    _complete_attempt(attempt, context.at)


def _complete_attempt(attempt: Attempt, at: datetime) -> None:
    """Register the outputs and mark the attempt as succeeded, in one transaction keyed by the attempt."""
    attempt.refresh_from_db(fields=["manifest"])
    if attempt.manifest is None:
        _fail_attempt(
            attempt,
            at,
            reason=Reason(
                "attempt.manifest.missing",
                "the program ended without sending the manifest of its outputs",
            ),
        )
        return
    archived = launches.archive_log(attempt)
    try:
        with transaction.atomic():
            message = attempt_outputs_register(attempt)
            stored_checkpoints_delete(attempt.job)
            services.attempt_end(
                attempt=attempt,
                event=AttemptEvent.COMPLETE,
                job_event=JobEvent.SUCCEED,
                at=at,
                reason=message,
                release=ReleaseReason.FINISHED,
                **archived,
            )
    except (RegistrationRefused, BlobMissing) as refusal:
        _fail_attempt(attempt, at, reason=str(refusal))


#: States in which attempts are reconciled one by one.
STATE_RECONCILERS: Mapping[AttemptState, Callable[[Attempt, AttemptReconcileContext], None]] = {
    AttemptState.PENDING: _reconcile_pending,
    AttemptState.ADMITTED: _reconcile_admitted,
    AttemptState.LAUNCHED: _reconcile_launched,
    AttemptState.RUNNING: _reconcile_launched,
    AttemptState.COMPLETING: _reconcile_completing,
}


def attempt_outputs_register(attempt: Attempt) -> str:
    """Register the files of the manifest; return a message that names what was created.

    :raises RegistrationRefused: if the files are not what the job has to create.
    """
    job, manifest = attempt.job, attempt.manifest or {}
    files = [
        (file["path"], f"sha256:{file['sha256']}", int(file["size"])) for file in manifest["files"]
    ]
    origin = registry.OutputOrigin(
        team=job.team,
        actor=job.created_by,
        job_uid=job.uid,
        attempt_uid=attempt.uid,
        shared=job.output_shared,
    )
    if job.kind == JobKind.EVALUATE:
        evaluation = registry.evaluation_register(
            origin=origin,
            model_version=job.model_version,
            dataset_version=job.dataset_version,
            split=job.spec["split"],
            files=files,
            metrics=manifest.get("metrics", {}),
        )
        return Reason(
            "attempt.output.evaluation",
            "the job evaluated {version}",
            version=str(evaluation.model_version),
        )
    if job.output_name:
        version = registry.model_version_register(
            origin=origin,
            name=job.output_name,
            files=files,
            base=job.model_version,
            dataset_version=job.dataset_version,
            metrics=manifest.get("metrics", {}),
            verdict=_quantization_verdict(job, manifest.get("metrics", {})),
        )
        return _created_version_message(version)
    artifact = registry.script_outputs_register(origin=origin, files=files)
    return (
        Reason("attempt.output.files", "output files: {count}", count=len(artifact.files))
        if artifact.files
        else "finished"
    )


def _quantization_verdict(job: Job, metrics: Mapping[str, Any]) -> QuantizationVerdict | None:
    """Acceptance of a quantized model by the job's own tolerance; None for other kinds of jobs."""
    if job.kind != JobKind.QUANTIZE:
        return None
    # An engine may support only some of the fields.
    requested, tolerance = job.spec.get("metrics", METRICS), job.spec.get("tolerance")
    return compare_metrics(metrics, metric_names=requested, tolerance=tolerance or {})


def _created_version_message(version: ModelVersion) -> str:
    if version.acceptance == GateDecision.REJECTED:
        return Reason(
            "attempt.output.version_not_accepted",
            "the job created {version}, which is not accepted: {reason}",
            version=str(version),
            reason=version.acceptance_reason,
        )
    return Reason(
        "attempt.output.version_created", "the job created {version}", version=str(version)
    )
