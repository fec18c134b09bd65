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
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet, prefetch_related_objects

from apps.jobs import selectors, services
from apps.jobs.models import Attempt, Job
from apps.jobs.reconcilers import launches, outputs, stops
from apps.jobs.reconcilers.scenes import Scene, note, scene_of
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
from controlplane.persistence.encryption import Undecryptable
from controlplane.persistence.leases import lease_rows, release_row, release_rows
from controlplane.ports.artifacts import ArtifactError, BlobMissing
from controlplane.ports.clusters import (
    ExitCause,
    LaunchRefused,
    ObservedLaunch,
    Phase,
)

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
BATCH = 32
#: What turns read of each, in the statement that leases it.
_READ = (
    "cluster",
    "continues",
    "job__team",
    "job__model_version__line",
    "job__model_version__artifact",
    "job__dataset_version__artifact",
    "job__code",
)
#: State of a claim → those of attempts that have not heard of it.
_UNTOLD: Mapping[ClaimState, Collection[AttemptState]] = {
    ClaimState.ADMITTED: (AttemptState.PENDING,),
    ClaimState.REVOKING: (AttemptState.PENDING, *stops.STOPPABLE),
}


def attempts_reconcile(*, at: datetime, uids: Collection[str] | None = None) -> int:
    """Take one turn for each attempt that has not ended, or for each of those; say how many were looked at.

    One batch of them: who is left waits for the next turn.
    """
    rows = Attempt.objects.exclude(state__in=ATTEMPT.final)
    return _reconcile(rows if uids is None else rows.filter(uid__in=uids), at=at)


def attempts_hear(*, claim_uid: str, at: datetime) -> int:
    """The claim was admitted or revoked: a turn for its attempt, and for those that wait for the same news.

    What hits many claims at once is told for each of them. The first pieces of news take a batch each, and find
    nothing left to do when they come for the others.
    """
    claim = Claim.objects.filter(uid=claim_uid).first()
    states = None if claim is None else _UNTOLD.get(ClaimState(claim.state))
    if claim is None or states is None or not Attempt.objects.filter(claim_uid=claim_uid).exists():
        return 0
    alike = Claim.objects.filter(state=claim.state).values("uid")
    return _reconcile(Attempt.objects.filter(state__in=states, claim_uid__in=alike), at=at)


def _reconcile(rows: QuerySet[Attempt], *, at: datetime) -> int:
    attempts = lease_rows(rows.select_related(*_READ), limit=BATCH, ttl=LEASE)
    # Logs and messages are masked by them: read once for the batch.
    prefetch_related_objects([one.job for one in attempts], "secret_variables")
    scene = scene_of(attempts, at=at)
    told = [one for one in attempts if one.state in stops.STOPPABLE and stops.is_wanted(one, scene)]
    stopping = [one for one in attempts if one.state == AttemptState.STOPPING]
    try:
        # First: who has to save has less time with each log of those that stopped.
        stops.begin(told, scene)
        stops.confirm(stopping, scene)
    except Exception:
        log.exception("attempts could not be stopped", extra={"attempts": len(told + stopping)})
    finally:
        release_rows((*stopping, *told))
    together = {one.pk for one in (*stopping, *told)}
    for attempt in attempts:
        if attempt.pk in together:
            continue
        try:
            with scene.guarding(attempt):
                if not scene.waits(attempt):
                    TURNS[AttemptState(attempt.state)](attempt, scene)
        finally:
            release_row(attempt)
    return len(attempts)


def _turn_pending(attempt: Attempt, scene: Scene) -> None:
    at = scene.at
    claim = scene.claim(attempt) if attempt.claim_uid else None
    cancelled = attempt.job.cancel_requested_at is not None
    if cancelled and (claim is None or claim.state == ClaimState.PENDING):
        services.attempt_end(
            attempt=attempt,
            event=AttemptEvent.WITHDRAW,
            job_event=JobEvent.CANCEL,
            at=at,
            reason=stops.cancelled_by(attempt),
            release=ReleaseReason.CANCELLED,
        )
    elif claim is None:
        if attempt.starts_after is None or attempt.starts_after <= at:
            services.attempt_request_claim(attempt=attempt)
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
        if stops.is_wanted(attempt, scene):
            stops.begin((attempt,), scene)
        else:
            _turn_admitted(attempt, scene)
    else:
        note(attempt, claim.explanation)


def _turn_admitted(attempt: Attempt, scene: Scene) -> None:
    at = scene.at
    # Asked once more: since the batch began, others of it may have taken their time.
    if not Claim.objects.filter(uid=attempt.claim_uid, state=ClaimState.ADMITTED).exists():
        return
    try:
        launches.adapter_of(attempt).launch(launches.render(attempt, claim=scene.claim(attempt)))
    except (LaunchRefused, ArtifactError, Undecryptable, ValueError) as refusal:
        reason = selectors.masked_text(str(refusal), job=attempt.job)
        _fail(attempt, at, reason=f"could not be started: {reason}")
        return
    with transaction.atomic():
        services.attempt_move(attempt, AttemptEvent.LAUNCH, at=at, reason="starting")
        job = Job.objects.select_for_update(no_key=True).get(pk=attempt.job_id)
        if job.state == JobState.WAITING:
            services.job_move(job, JobEvent.START, at=at, reason="running")


def _turn_launched(attempt: Attempt, scene: Scene) -> None:
    observed, at = scene.observed(attempt), scene.at
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
        message = messages[0] if messages else "starting"
        note(attempt, selectors.masked_text(message, job=attempt.job))


def _settle(attempt: Attempt, observed: ObservedLaunch, at: datetime) -> None:
    """Every process is gone: well or badly."""
    failed = [
        one for one in observed.replicas if one.cause is not ExitCause.FINISHED or one.exit_code
    ]
    # The first to end is why the others did; of several within one second, the one that did not fail by itself.
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
            services.attempt_move(
                attempt, AttemptEvent.FINISH, at=at, reason="registering what it made", exit_code=0
            )
            quotas.claim_release(uid=attempt.claim_uid, reason=ReleaseReason.FINISHED, at=at)
        _complete(attempt, at)
        return
    archived = launches.archive_log(attempt)
    cause = bad.cause or ExitCause.LOST
    if cause is ExitCause.FAILED and says_out_of_memory(archived.get("log_tail", "")):
        cause = ExitCause.OUT_OF_MEMORY
    # A cluster may say an end by the last lines of the log.
    message = selectors.masked_text(bad.message, job=attempt.job)
    reason = message or f"ended with exit code {bad.exit_code}"
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
        services.log_keep(attempt=attempt, message=message, **archived)
    else:
        _retry_or_fail(attempt, at, cause=cause, reason=reason, **ending)


def _retry_or_fail(
    attempt: Attempt, at: datetime, *, cause: ExitCause, reason: str, **ending: Any
) -> None:
    """Retry after a back-off, from the newest checkpoint, if the job's policy has it."""
    decision = services.retry_decision(
        attempt, cause=cause, log_tail=ending.get("log_tail", ""), reason=reason
    )
    if decision.retry is None:
        _fail(attempt, at, reason=decision.reason, **ending)
        return
    services.attempt_end(
        attempt=attempt,
        event=AttemptEvent.FAIL,
        job_event=JobEvent.REQUEUE,
        at=at,
        reason=decision.reason,
        release=ReleaseReason.FINISHED,
        retry=decision.retry,
        **ending,
    )


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


def _turn_completing(attempt: Attempt, scene: Scene) -> None:
    _complete(attempt, scene.at)


def _complete(attempt: Attempt, at: datetime) -> None:
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


#: Those of states in which attempts are turned one by one.
TURNS: Mapping[AttemptState, Callable[[Attempt, Scene], None]] = {
    AttemptState.PENDING: _turn_pending,
    AttemptState.ADMITTED: _turn_admitted,
    AttemptState.LAUNCHED: _turn_launched,
    AttemptState.RUNNING: _turn_launched,
    AttemptState.COMPLETING: _turn_completing,
}
