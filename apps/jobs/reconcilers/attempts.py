"""The life of attempts, one turn at a time.

Each turn leases rows, looks at the world without a transaction, and applies one guarded move. A turn
that dies between any two lines is simply made again: names of Launches derive from uids, launching and
stopping tolerate repetition, and registering outputs is keyed by the attempt.

::

    PENDING ─ claim admitted? ─▶ ADMITTED ─ launch ─▶ LAUNCHED ─ observe ─▶ RUNNING ─ observe ─▶ COMPLETING
                                                                                          │ register outputs
                                            STOPPING ─ stop, observe ─▶ STOPPED           ▼
                                                                                      SUCCEEDED
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.jobs import services
from apps.jobs.models import Attempt, Job
from apps.jobs.reconcilers import launches, outputs
from apps.models.services.artifacts import RegistrationRefused
from apps.quotas import selectors as quotas_selectors
from apps.quotas import services as quotas
from apps.quotas.models import Claim
from controlplane.domain.claims import ClaimState, ReleaseReason
from controlplane.domain.jobs import (
    ATTEMPT,
    AttemptEvent,
    AttemptState,
    JobEvent,
    JobState,
)
from controlplane.domain.specs.memory import says_out_of_memory
from controlplane.persistence.leases import lease_rows, release_row
from controlplane.persistence.moves import LeaseLost
from controlplane.ports.artifacts import ArtifactError, BlobMissing
from controlplane.ports.clusters import (
    ClusterUnavailable,
    ExitCause,
    LaunchRefused,
    ObservedLaunch,
    Phase,
)

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
BATCH = 32
#: What people are told where a turn met what it was not made for.
FAULT = "a fault of ours keeps it from going on; it is tried again, and the worker's log says more"
GRACE = timedelta(seconds=30)


def attempts_reconcile(*, at: datetime, uid: str | None = None) -> int:
    """Take one turn for each attempt that has not ended; say how many were looked at."""
    rows = Attempt.objects.exclude(state__in=ATTEMPT.final)
    if uid is not None:
        rows = rows.filter(uid=uid)
    attempts = lease_rows(rows.select_related("job__team"), limit=BATCH, ttl=LEASE)
    # Cluster → what was said when it did not answer: nobody waits for it a second time in this turn.
    silent: dict[int, str] = {}
    for attempt in attempts:
        try:
            if attempt.cluster_id in silent:
                _note(attempt, silent[attempt.cluster_id])
                continue
            TURNS[AttemptState(attempt.state)](attempt, at)
        except LeaseLost:
            log.info("another worker took over", extra={"attempt": attempt.uid})
        except ClusterUnavailable as error:
            message = f"the cluster does not answer: {error}"
            if attempt.cluster_id is not None:
                silent[attempt.cluster_id] = message
            _note(attempt, message)
        except Exception:
            # One attempt's trouble must not stop the others; the next turn looks again.
            log.exception("a turn failed", extra={"attempt": attempt.uid, "state": attempt.state})
            _note(attempt, FAULT)
        finally:
            release_row(attempt)
    return len(attempts)


def _note(attempt: Attempt, message: str) -> None:
    if attempt.message != message:
        Attempt.objects.filter(pk=attempt.pk, lease_token=attempt.lease_token).update(
            message=message
        )


def _turn_pending(attempt: Attempt, at: datetime) -> None:
    claim = Claim.objects.get(uid=attempt.claim_uid)
    if attempt.job.cancel_requested_at is not None and claim.state == ClaimState.PENDING:
        services.attempt_end(
            attempt=attempt,
            event=AttemptEvent.WITHDRAW,
            job_event=JobEvent.CANCEL,
            at=at,
            reason=_cancelled_by(attempt.job),
            release=ReleaseReason.CANCELLED,
        )
    elif claim.state in (ClaimState.ADMITTED, ClaimState.REVOKING):
        services.attempt_move(
            attempt,
            AttemptEvent.ADMIT,
            at=at,
            reason=claim.explanation,
            chip=claim.chip,
            cluster=quotas_selectors.cluster_of(claim),
            admitted_at=at,
        )
        _turn_admitted(attempt, at)
    else:
        _note(attempt, claim.explanation)


def _cancelled_by(job: Job) -> str:
    return f"cancelled by {job.cancel_requested_by}"


def _turn_admitted(attempt: Attempt, at: datetime) -> None:
    if _wants_stop(attempt, at):
        return
    try:
        launches.adapter_of(attempt).launch(launches.render(attempt))
    except (LaunchRefused, ArtifactError, ValueError) as refusal:
        _fail(attempt, at, reason=f"could not be started: {refusal}")
        return
    with transaction.atomic():
        services.attempt_move(attempt, AttemptEvent.LAUNCH, at=at, reason="starting")
        job = Job.objects.select_for_update(no_key=True).get(pk=attempt.job_id)
        if job.state == JobState.WAITING:
            services.job_move(job, JobEvent.START, at=at, reason="running")


def _turn_launched(attempt: Attempt, at: datetime) -> None:
    if _wants_stop(attempt, at):
        return
    observed = launches.observe(attempt)
    if observed is None:
        _fail(attempt, at, reason="the cluster no longer knows it", exit_cause=ExitCause.LOST)
    elif observed.ended:
        _settle(attempt, observed, at)
    else:
        _follow(attempt, observed, at)


def _follow(attempt: Attempt, observed: ObservedLaunch, at: datetime) -> None:
    phases = {replica.phase for replica in observed.replicas}
    messages = [replica.message for replica in observed.replicas if replica.message]
    if attempt.state == AttemptState.LAUNCHED and phases == {Phase.RUNNING}:
        services.attempt_move(attempt, AttemptEvent.RUN, at=at, reason="running", started_at=at)
    elif attempt.state == AttemptState.LAUNCHED:
        _note(attempt, messages[0] if messages else "starting")


def _settle(attempt: Attempt, observed: ObservedLaunch, at: datetime) -> None:
    """Every process is gone: well or badly."""
    bad = next(
        (one for one in observed.replicas if one.cause is not ExitCause.FINISHED or one.exit_code),
        None,
    )
    if bad is None:
        with transaction.atomic():
            services.attempt_move(
                attempt, AttemptEvent.FINISH, at=at, reason="registering what it made", exit_code=0
            )
            quotas.claim_release(uid=attempt.claim_uid, reason=ReleaseReason.FINISHED, at=at)
        _turn_completing(attempt, at)
        return
    archived = launches.archive_log(attempt)
    cause = bad.cause or ExitCause.LOST
    if cause is ExitCause.FAILED and says_out_of_memory(archived.get("log_tail", "")):
        cause = ExitCause.OUT_OF_MEMORY
    reason = bad.message or f"ended with exit code {bad.exit_code}"
    ending = {"exit_code": bad.exit_code, "exit_cause": cause, **archived}
    if cause is ExitCause.OUT_OF_MEMORY:
        _out_of_memory(attempt, at, reason=reason, **ending)
    elif services.may_go_on(attempt, cause):
        _taken_away(attempt, at, reason=reason, **ending)
    elif services.may_be_broken_hardware(
        archived.get("log_tail", ""), ended_at=bad.ended_at, at=at
    ):
        # If it is, its cards are taken back within moments, and its job goes on elsewhere.
        message = f"{reason}; waiting a moment to hear whether its cards are at fault"
        _note(attempt, message)
    else:
        _fail(attempt, at, reason=reason, **ending)


def _out_of_memory(attempt: Attempt, at: datetime, *, reason: str, **ending: Any) -> None:
    """Try once more with smaller batches, from the newest checkpoint, if the spec allows it."""
    answer = services.memory_answer(attempt)
    if answer.overrides is None:
        _fail(attempt, at, reason=f"{reason}; {answer.reason}", **ending)
        return
    services.attempt_end(
        attempt=attempt,
        event=AttemptEvent.FAIL,
        job_event=JobEvent.REQUEUE,
        at=at,
        reason=f"{reason}; {answer.reason}",
        release=ReleaseReason.FINISHED,
        overrides=answer.overrides,
        **ending,
    )


def _taken_away(attempt: Attempt, at: datetime, *, reason: str, **ending: Any) -> None:
    """Its cluster ended it, nobody here: its job goes on from the newest checkpoint when there are cards."""
    services.attempt_end(
        attempt=attempt,
        event=AttemptEvent.FAIL,
        job_event=JobEvent.REQUEUE,
        at=at,
        reason=f"{reason}; waiting for cards again",
        release=ReleaseReason.FAULT,
        **ending,
    )


def _fail(attempt: Attempt, at: datetime, *, reason: str, **changes: Any) -> None:
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


def _wants_stop(attempt: Attempt, at: datetime) -> bool:
    """Begin to stop it if somebody wants that; say whether."""
    job = attempt.job
    claim = Claim.objects.get(uid=attempt.claim_uid)
    if job.cancel_requested_at is not None:
        stop_reason, reason = ReleaseReason.CANCELLED, _cancelled_by(job)
    elif claim.state == ClaimState.REVOKING:
        stop_reason = ReleaseReason(claim.release_reason)
        reason = f"its cards are taken back ({stop_reason})"
    else:
        return False
    services.attempt_move(
        attempt, AttemptEvent.STOP, at=at, reason=f"stopping: {reason}", stop_reason=stop_reason
    )
    launches.stop(attempt, grace=_grace(attempt, claim, at))
    return True


def _grace(attempt: Attempt, claim: Claim, at: datetime) -> timedelta:
    """What is left of the time that it was given to save and stop."""
    if attempt.stop_reason == ReleaseReason.CANCELLED or claim.revoke_by is None:
        return GRACE
    return max(timedelta(), claim.revoke_by - at)


def _turn_stopping(attempt: Attempt, at: datetime) -> None:
    claim = Claim.objects.get(uid=attempt.claim_uid)
    launches.stop(attempt, grace=_grace(attempt, claim, at))
    observed = launches.observe(attempt)
    if observed is not None and not observed.ended:
        return
    cancelled = attempt.job.cancel_requested_at is not None
    reason = (
        _cancelled_by(attempt.job)
        if cancelled
        else f"waiting for cards again ({attempt.stop_reason})"
    )
    services.attempt_end(
        attempt=attempt,
        event=AttemptEvent.CONFIRM,
        job_event=JobEvent.CANCEL if cancelled else JobEvent.REQUEUE,
        at=at,
        reason=reason,
        release=ReleaseReason(attempt.stop_reason),
        **launches.archive_log(attempt),
    )


def _turn_completing(attempt: Attempt, at: datetime) -> None:
    """Register the outputs and succeed, in one transaction keyed by the attempt."""
    attempt.refresh_from_db(fields=["manifest"])
    if attempt.manifest is None:
        _fail(
            attempt,
            at,
            reason="the program ended without saying what it made (no manifest arrived)",
        )
        return
    archived = launches.archive_log(attempt)
    try:
        with transaction.atomic():
            made = outputs.outputs_register(attempt)
            services.attempt_end(
                attempt=attempt,
                event=AttemptEvent.COMPLETE,
                job_event=JobEvent.SUCCEED,
                at=at,
                reason=made,
                release=ReleaseReason.FINISHED,
                **archived,
            )
    except (RegistrationRefused, BlobMissing) as refusal:
        _fail(attempt, at, reason=str(refusal))


TURNS: Mapping[AttemptState, Callable[[Attempt, datetime], None]] = {
    AttemptState.PENDING: _turn_pending,
    AttemptState.ADMITTED: _turn_admitted,
    AttemptState.LAUNCHED: _turn_launched,
    AttemptState.RUNNING: _turn_launched,
    AttemptState.STOPPING: _turn_stopping,
    AttemptState.COMPLETING: _turn_completing,
}
