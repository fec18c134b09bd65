"""Changes to jobs and attempts: every move of their state machines passes here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max

from apps.accounts.models import Team, User
from apps.accounts.services import audit
from apps.jobs.models import (
    Attempt,
    AttemptTransition,
    Job,
    JobTransition,
    ProgressPoint,
    UploadedFile,
)
from apps.jobs.selectors import OWNER_KIND
from apps.models import selectors as registry_selectors
from apps.models.models import Artifact, DatasetVersion, ModelVersion
from apps.quotas import services as quotas
from apps.quotas.models import Queue
from controlplane.domain.claims import GangShape, ReleaseReason, RoleShape
from controlplane.domain.jobs import (
    ATTEMPT,
    JOB,
    AttemptEvent,
    JobEvent,
    JobKind,
    JobState,
)
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.models import ModelState
from controlplane.domain.resources import Bytes, Millicpu, Resources
from controlplane.outbox.messages import publish
from controlplane.persistence.moves import move
from controlplane.ports import registry
from controlplane.ports.artifacts import ArtifactError, Blob, StorageFull
from controlplane.ports.engines import ROLES, Finding, Task


class SpecRefused(Exception):
    """The request cannot be run as it is; one finding for each thing wrong."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("; ".join(f"{finding.field}: {finding.message}" for finding in findings))
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What somebody wants run."""

    kind: JobKind
    name: str
    spec: Mapping[str, Any]
    queue: Queue
    engine: str = "transformers"
    model_version: ModelVersion | None = None
    dataset_version: DatasetVersion | None = None
    code: Artifact | None = None
    output_name: str = ""
    #: Every team may use what it makes; for administrators of the company.
    output_shared: bool = False
    chips: tuple[str, ...] = ("cpu",)
    cards: int = 1
    #: Bytes for one replica; 0 means no limit.
    memory: int = 0
    priority: int = 0
    run_seconds: int | None = None
    extra_findings: tuple[Finding, ...] = field(default=())


def spec_of(request: JobRequest) -> dict[str, Any]:
    """What was asked for, over what the engine recommends for the model."""
    version = request.model_version
    facts = registry_selectors.model_facts(version) if version else None
    recommended = registry.engine(request.engine).recommended(Task(request.kind), model=facts)
    return {**recommended, **request.spec}


def job_check(request: JobRequest) -> tuple[Finding, ...]:
    """Everything wrong with the request; empty means that it can be submitted."""
    findings = [*request.extra_findings, *_check_chips(request), *_check_inputs(request)]
    if request.engine not in registry.engine_names():
        known = ", ".join(registry.engine_names())
        findings.append(
            Finding(field="engine", message=f"no engine is called {request.engine!r}; use {known}")
        )
        return tuple(findings)
    version = request.model_version
    chip = registry.chips().get(request.chips[0]) if request.chips else None
    findings += registry.engine(request.engine).check(
        Task(request.kind),
        spec_of(request),
        chip=chip,
        model=registry_selectors.model_facts(version) if version else None,
    )
    return tuple(findings)


def job_preview(request: JobRequest) -> tuple[tuple[Finding, ...], Mapping[str, Any] | None]:
    """Everything wrong with the request, and its spec with every default if nothing is."""
    findings = job_check(request)
    if findings:
        return findings, None
    return (), registry.engine(request.engine).normalise(Task(request.kind), spec_of(request))


def _check_chips(request: JobRequest) -> list[Finding]:
    known = registry.chips()
    findings = [
        Finding(field="chips", message=f"no chip is called {chip!r}; known: {', '.join(known)}")
        for chip in request.chips
        if chip not in known
    ]
    if not request.chips:
        findings.append(Finding(field="chips", message="name at least one acceptable chip"))
    if not 1 <= request.cards <= 1024:
        findings.append(
            Finding(field="cards", message=f"must be between 1 and 1024, got {request.cards}")
        )
    if request.memory < 0:
        findings.append(
            Finding(field="memory", message=f"cannot be negative, got {request.memory}")
        )
    return findings


def _check_inputs(request: JobRequest) -> list[Finding]:
    findings = []
    if not request.name.strip():
        findings.append(Finding(field="name", message="give the job a name"))
    if request.kind in (JobKind.FINETUNE, JobKind.EVALUATE):
        if request.model_version is None:
            findings.append(Finding(field="model_version", message="choose a model version"))
        elif request.model_version.state != ModelState.READY:
            findings.append(
                Finding(
                    field="model_version",
                    message=f"{request.model_version} is {request.model_version.state}, not ready",
                )
            )
        if request.dataset_version is None:
            findings.append(Finding(field="dataset_version", message="choose a dataset version"))
    if request.kind is JobKind.FINETUNE and not request.output_name:
        findings.append(
            Finding(field="output_name", message="name the model that the new version belongs to")
        )
    if request.kind is JobKind.EVALUATE and request.dataset_version is not None:
        findings += _check_split(request, request.dataset_version)
    if request.kind is JobKind.FINETUNE and request.dataset_version is not None:
        rows = request.dataset_version.statistics.get("rows_by_split", {})
        if not rows.get("train"):
            findings.append(
                Finding(
                    field="dataset_version",
                    message=f"{request.dataset_version} has no rows to train on",
                )
            )
    return findings


def _check_split(request: JobRequest, dataset: DatasetVersion) -> list[Finding]:
    """An evaluation of no rows would fail only once it had its cards."""
    if request.engine not in registry.engine_names():
        return []
    spec = registry.engine(request.engine).normalise(Task(request.kind), request.spec)
    rows = dataset.statistics.get("rows_by_split", {})
    if rows.get(spec.get("split")):
        return []
    filled = ", ".join(name for name, count in rows.items() if count)
    message = f"{dataset} has no rows in {spec.get('split')!r}; it has {filled}"
    return [Finding(field="split", message=message)]


@transaction.atomic
def job_submit(*, actor: User, team: Team, request: JobRequest) -> Job:
    """The new job, waiting, with its first attempt and claim.

    :raises SpecRefused: if anything is wrong with it; nothing is kept then.
    """
    findings = list(job_check(request))
    if request.output_shared and not actor.is_superuser:
        message = "only an administrator of the company can share a model with every team"
        findings.append(Finding(field="output_shared", message=message))
    if findings:
        raise SpecRefused(findings)
    task = Task(request.kind)
    shape = GangShape(
        roles=(
            RoleShape(
                name=ROLES[task],
                replicas=1,
                cards=request.cards,
                limits=Resources(cpu=Millicpu(request.cards * 1000), memory=Bytes(request.memory)),
            ),
        )
    )
    job = Job.objects.create(
        team=team,
        created_by=actor,
        name=request.name.strip(),
        kind=request.kind,
        engine=request.engine,
        spec=dict(registry.engine(request.engine).normalise(task, spec_of(request))),
        model_version=request.model_version,
        dataset_version=request.dataset_version,
        code=request.code,
        output_name=request.output_name,
        output_shared=request.output_shared,
        queue=request.queue,
        chips=list(request.chips),
        shape=shape.as_json(),
        priority=request.priority,
        run_seconds=request.run_seconds,
        state_reason="waiting for cards",
    )
    audit(actor=actor, action="job.submit", team=team, uid=job.uid, name=job.name, kind=job.kind)
    attempt_create(job=job, continues=None)
    return job


def attempt_create(*, job: Job, continues: Attempt | None) -> Attempt:
    """The next attempt, with a claim. Call it in the transaction that makes it necessary."""
    last = job.attempts.aggregate(last=Max("number"))["last"] or 0
    attempt = Attempt.objects.create(job=job, number=last + 1, continues=continues)
    claim = quotas.claim_request(
        owner=(OWNER_KIND, attempt.uid),
        team=job.team,
        queue=job.queue,
        shape=GangShape.from_json(job.shape),
        chips=job.chips,
        priority=job.priority,
    )
    attempt.claim_uid = claim.uid
    attempt.save(update_fields=["claim_uid"])
    return attempt


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


@transaction.atomic
def job_retry(*, job: Job, actor: User, at: datetime) -> Attempt:
    """A new attempt that goes on from the newest checkpoint.

    :raises IllegalTransition: if it has not failed and was not cancelled (two people pressing the
        button get one retry and one of these).
    """
    row = Job.objects.select_for_update(no_key=True).get(pk=job.pk)
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


def job_move(
    job: Job, event: JobEvent, *, at: datetime, reason: str, actor: str = "", **changes: Any
) -> None:
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


@transaction.atomic
def attempt_end(
    *,
    attempt: Attempt,
    event: AttemptEvent,
    job_event: JobEvent,
    at: datetime,
    reason: str,
    release: ReleaseReason,
    **changes: Any,
) -> None:
    """End the attempt, give back its cards and move its job: all of it or nothing."""
    attempt_move(attempt, event, at=at, reason=reason, ended_at=at, **changes)
    quotas.claim_release(uid=attempt.claim_uid, reason=release, at=at)
    job = Job.objects.select_for_update(no_key=True).get(pk=attempt.job_id)
    ended = None if job_event is JobEvent.REQUEUE else at
    if job_event is JobEvent.REQUEUE and job.state == JobState.WAITING:
        job.state_reason = reason
        job.save(update_fields=["state_reason"])
    else:
        job_move(job, job_event, at=at, reason=reason, ended_at=ended)
    if job_event is JobEvent.REQUEUE:
        attempt_create(job=job, continues=resumable(attempt))


#: Characters of an output file's path.
LONGEST_OUTPUT_PATH = 300


class ReportRefused(Exception):
    """What the attempt sent cannot be kept; the message says why."""


@transaction.atomic
def progress_record(*, attempt: Attempt, points: Sequence[Mapping[str, Any]], at: datetime) -> None:
    """Keep what the attempt reports. The same step reported twice counts once, the last wins.

    :raises ReportRefused: if a point has no step.
    """
    rows: dict[int, ProgressPoint] = {}
    latest: dict[str, Any] = {}
    checkpointed_at = None
    for point in points:
        values = dict(point)
        if "checkpoint" in values:
            checkpointed_at = at
            latest["checkpoint"] = values.pop("checkpoint")
            if not values:
                continue
        step = values.pop("step", None)
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise ReportRefused("each point needs a whole, non-negative number as its step")
        merged = {**(rows[step].values if step in rows else {}), **values}
        rows[step] = ProgressPoint(attempt=attempt, step=step, at=at, values=merged)
        latest |= {"step": step, **values}
    ProgressPoint.objects.bulk_create(
        rows.values(),
        update_conflicts=True,
        unique_fields=("attempt", "step"),
        update_fields=("at", "values"),
    )
    row = Attempt.objects.select_for_update(no_key=True).get(pk=attempt.pk)
    row.progress = {**row.progress, **latest}
    row.reported_at = at
    row.save(update_fields=["progress", "reported_at"])
    total = row.progress.get("total_steps") or 0
    done = row.progress.get("step", 0) / total if total else 0.0
    quotas.claim_progress(
        uid=row.claim_uid, progress=min(1.0, done), checkpointed_at=checkpointed_at
    )


def file_receive(*, attempt: Attempt, path: str, sha256: str, chunks: Iterable[bytes]) -> Blob:
    """Store a file that the attempt sends, and remember it until the manifest lists it.

    :raises ReportRefused: if the path may leave a folder, or the content has another digest.
    :raises StorageFull: if the artifact store has no room.
    """
    check_output_path(path)
    try:
        blob = registry_selectors.artifact_store().put(chunks, expected=f"sha256:{sha256}")
    except StorageFull:
        raise
    except ArtifactError as error:
        raise ReportRefused(f"{path!r} did not arrive whole: {error}") from None
    file_record(attempt=attempt, path=path, digest=blob.digest, size=blob.size)
    return blob


def check_output_path(path: str) -> None:
    """:raises ReportRefused: unless it is relative, plain and stays below the folder it is put in."""
    plain = path.isprintable() and "\\" not in path and len(path) <= LONGEST_OUTPUT_PATH
    if not plain or any(part in ("", ".", "..") for part in path.split("/")):
        raise ReportRefused(
            f'a file\'s path is relative, without "..", and has at most {LONGEST_OUTPUT_PATH} '
            f"characters; got {path!r}"
        )


def file_record(*, attempt: Attempt, path: str, digest: str, size: int) -> None:
    """Remember an uploaded file until the manifest lists it. Sending it again replaces it."""
    UploadedFile.objects.update_or_create(
        attempt=attempt, path=path, defaults={"digest": digest, "size": size}
    )


@transaction.atomic
def manifest_record(*, attempt: Attempt, manifest: Mapping[str, Any]) -> None:
    """Keep what the attempt says it made.

    :raises ReportRefused: if it lists a file that did not arrive as it says.
    """
    uploads = {upload.path: upload for upload in attempt.uploads.all()}
    for file in manifest["files"]:
        upload = uploads.get(file["path"])
        if upload is None:
            raise ReportRefused(f"the manifest lists {file['path']!r}, which was not uploaded")
        if upload.digest != f"sha256:{file['sha256']}" or upload.size != file["size"]:
            raise ReportRefused(f"{file['path']!r} arrived with other content than the manifest's")
    Attempt.objects.filter(pk=attempt.pk).update(manifest=dict(manifest))
