"""Reports of attempts: progress, output files, and the manifest that comes last.

Large files go straight to a store that signs URLs::

    attempt ── start ──▶ web ── creates the upload, signs URLs ──▶ store
    attempt ── PUT parts ────────────────────────────────────────▶ store
    attempt ── start ──▶ web ── signs URLs again that have expired
    attempt ── complete ▶ web ── verifies size and digest, stores ▶ store
    when the attempt has ended ── aborts what is unfinished ───────▶ store

Without such a store, and for files that do not arrive, attempts send files to the web (``attempt_file_receive``).
Both ways end in the same row, which the manifest refers to. Files of a checkpoint are sent in the same way; its
own manifest makes them an ``AttemptCheckpoint``, which the next attempt downloads.
"""

from __future__ import annotations

import logging
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeGuard

from django.core import signing
from django.db import transaction
from django.db.models import Sum

from apps.jobs import selectors
from apps.jobs.models import (
    Attempt,
    AttemptCheckpoint,
    AttemptUpload,
    ProgressPoint,
    UnfinishedUpload,
)
from apps.models import selectors as registry_selectors
from apps.quotas import services as quotas
from controlplane.domain.common.reasons import Reason, ReasonedError
from controlplane.domain.common.resources import GIB, format_bytes
from controlplane.domain.jobs.lifecycle import ATTEMPT, AttemptState
from controlplane.persistence.advisory_locks import AdvisoryLock, session_lock
from controlplane.ports.artifacts import (
    ArtifactError,
    Blob,
    BlobMissing,
    SigningStore,
    StorageFull,
    StorageUnavailable,
    UploadIncomplete,
    UploadPart,
    UploadSigningStore,
)

#: Maximum number of characters in the path of an output file.
MAX_OUTPUT_PATH_LENGTH = 300
#: Of all output files of an attempt: the weights of the largest models of the catalog, and their checkpoints.
MAX_OUTPUT_BYTES = 8 * 1024 * GIB
#: Path prefix of uploads that belong to a checkpoint, before its step.
CHECKPOINT_UPLOADS = ".checkpoints/"
#: Code of the message of a running attempt whose last upload of a checkpoint failed.
CHECKPOINT_NOT_UPLOADED = "attempt.checkpoint.not_uploaded"
#: In characters.
MAX_UPLOAD_ERROR_LENGTH = 500
#: Of the column of steps.
LARGEST_STEP = 2**31 - 1
#: Reported metrics that charts and comparisons use.
METRICS = ("loss", "eval_loss", "learning_rate", "tokens_per_second")


class ReportRefused(ReasonedError):
    """The report is invalid; the message says why."""


@transaction.atomic
def attempt_progress_store(
    *, attempt: Attempt, points: Sequence[Mapping[str, Any]], at: datetime
) -> None:
    """Store reported points. Points of the same step are merged, the last value of each metric wins: a validation
    comes after the loss of its step.

    :raises ReportRefused: if a point has no step, or a metric is not a number.
    """
    row = Attempt.objects.select_for_update(no_key=True).get(pk=attempt.pk)
    rows = _stored_points(attempt, points)
    fresh: dict[int, ProgressPoint] = {}
    latest: dict[str, Any] = {}
    checkpointed_at = None
    for point in points:
        values = dict(point)
        if "checkpoint" in values:
            saved = values.pop("checkpoint")
            if isinstance(saved, Mapping) and saved.get("upload_error"):
                _note_failed_upload(row, saved)
                if not values:
                    continue
            checkpointed_at = at
            latest["checkpoint"] = saved
            if isinstance(saved, Mapping) and _is_step(saved.get("step")):
                _merge_point(rows, fresh, attempt, saved["step"], {"checkpoint": saved}, at)
            if not values:
                continue
        step = values.pop("step", None)
        if not _is_step(step):
            raise ReportRefused(
                "attempt.progress.invalid_step",
                "each point must have a whole, non-negative number as its step",
            )
        _check_metrics(values)
        _merge_point(rows, fresh, attempt, step, values, at)
        latest |= {"step": step, **values}
    ProgressPoint.objects.bulk_create(
        fresh.values(),
        update_conflicts=True,
        unique_fields=("attempt", "step"),
        update_fields=("at", "values"),
    )
    row.progress = {**row.progress, **latest}
    row.reported_at = at
    row.save(update_fields=["progress", "reported_at", "message"])
    total = row.progress.get("total_steps") or 0
    done = row.progress.get("step", 0) / total if total else 0.0
    quotas.claim_progress_update(
        uid=row.claim_uid, progress=min(1.0, done), checkpointed_at=checkpointed_at
    )


def _note_failed_upload(row: Attempt, saved: Mapping[str, Any]) -> None:
    """Warn in the message of a running attempt that a checkpoint is not in the artifact store."""
    step, error = saved.get("step"), str(saved["upload_error"])[:MAX_UPLOAD_ERROR_LENGTH]
    if row.state != AttemptState.RUNNING or not _is_step(step):
        return
    row.message = Reason(
        "attempt.checkpoint.not_uploaded",
        "running; the checkpoint at step {step} was not uploaded, and the upload is repeated: {error}",
        step=step,
        error=selectors.masked_text(error, job=row.job),
    )


def _merge_point(
    known: dict[int, ProgressPoint],
    fresh: dict[int, ProgressPoint],
    attempt: Attempt,
    step: int,
    values: Mapping[str, Any],
    at: datetime,
) -> None:
    merged = {**(known[step].values if step in known else {}), **values}
    known[step] = fresh[step] = ProgressPoint(attempt=attempt, step=step, at=at, values=merged)


def _is_step(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_STEP


def _check_metrics(values: Mapping[str, Any]) -> None:
    for name in METRICS:
        value = values.get(name)
        if value is not None and not _is_finite_number(value):
            raise ReportRefused(
                "attempt.metric.not_a_number",
                "{metric} must be a number or null, got {value}",
                metric=name,
                value=repr(str(value)[:40]),
            )


def _is_finite_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _stored_points(
    attempt: Attempt, points: Sequence[Mapping[str, Any]]
) -> dict[int, ProgressPoint]:
    """Stored points of the reported steps and checkpoints, by step."""
    saved = (point["checkpoint"] for point in points if "checkpoint" in point)
    named = [*points, *(each for each in saved if isinstance(each, Mapping))]
    steps = [step for each in named if _is_step(step := each.get("step"))]
    return {known.step: known for known in attempt.points.filter(step__in=steps)}


def attempt_file_receive(
    *, attempt: Attempt, path: str, sha256: str, size: int, chunks: Iterable[bytes]
) -> Blob:
    """Store a file that the attempt uploads, until the manifest lists it.

    :raises ReportRefused: if the path may leave its folder, the files of the attempt exceed the limit, or the
        content has another digest.
    :raises StorageFull: if the artifact store is full.
    :raises StorageUnavailable: if the artifact store does not answer.
    """
    check_output_path(path)
    check_output_size(attempt=attempt, path=path, size=size)
    try:
        blob = registry_selectors.artifact_store().put(chunks, expected=f"sha256:{sha256}")
    except (StorageFull, StorageUnavailable):
        raise
    except ArtifactError as error:
        raise ReportRefused(
            "attempt.output.upload_incomplete",
            "the upload of {path} is incomplete: {error}",
            path=repr(path),
            error=str(error),
        ) from None
    attempt_upload_record(attempt=attempt, path=path, digest=blob.digest, size=blob.size)
    return blob


def check_output_path(path: str) -> None:
    """:raises ReportRefused: unless the path is relative, printable and stays below its folder."""
    plain = path.isprintable() and "\\" not in path and len(path) <= MAX_OUTPUT_PATH_LENGTH
    if not plain or any(part in ("", ".", "..") for part in path.split("/")):
        raise ReportRefused(
            "attempt.output.invalid_path",
            'a file path must be relative, without "..", and have at most {limit} '
            "characters; got {path}",
            limit=MAX_OUTPUT_PATH_LENGTH,
            path=repr(path),
        )


def check_output_size(*, attempt: Attempt, path: str, size: int) -> None:
    """:raises ReportRefused: if the files of the attempt, unfinished uploads included, exceed the limit."""
    others = sum(
        files.exclude(path=path).aggregate(total=Sum("size"))["total"] or 0
        for files in (attempt.uploads, attempt.unfinished_uploads)
    )
    others += attempt.checkpoints.aggregate(total=Sum("size"))["total"] or 0
    if others + size > MAX_OUTPUT_BYTES:
        raise ReportRefused(
            "attempt.output.too_large",
            "the output files of a job attempt have a limit of {limit}; {path} has {size}, the others "
            "have {others}",
            limit=format_bytes(MAX_OUTPUT_BYTES),
            path=repr(path),
            size=format_bytes(size),
            others=format_bytes(others),
        )


def attempt_upload_record(*, attempt: Attempt, path: str, digest: str, size: int) -> None:
    """Record an uploaded file; uploading the same path again replaces it."""
    AttemptUpload.objects.update_or_create(
        attempt=attempt, path=path, defaults={"digest": digest, "size": size}
    )


@transaction.atomic
def attempt_manifest_store(*, attempt: Attempt, manifest: Mapping[str, Any]) -> None:
    """Store the manifest of the attempt's outputs.

    :raises ReportRefused: if it lists a file that was not uploaded with that size and digest.
    """
    uploaded = {
        upload.path: Blob(digest=upload.digest, size=upload.size)
        for upload in attempt.uploads.all()
    }
    _check_listed_files(manifest["files"], uploaded=uploaded)
    Attempt.objects.filter(pk=attempt.pk).update(manifest=dict(manifest))


def _check_listed_files(
    files: Sequence[Mapping[str, Any]], *, uploaded: Mapping[str, Blob]
) -> None:
    """:raises ReportRefused: if a file was not uploaded with that size and digest."""
    for file in files:
        blob = uploaded.get(file["path"])
        if blob is None:
            raise ReportRefused(
                "attempt.manifest.file_missing",
                "the manifest lists {path}, which was not uploaded",
                path=repr(file["path"]),
            )
        if blob != _listed_blob(file):
            raise ReportRefused(
                "attempt.manifest.digest_mismatch",
                "the content of {path} differs from the manifest",
                path=repr(file["path"]),
            )


def _listed_blob(file: Mapping[str, Any]) -> Blob:
    return Blob(digest=f"sha256:{file['sha256']}", size=file["size"])


@transaction.atomic
def attempt_checkpoint_store(
    *, attempt: Attempt, step: int, keep: int, files: Sequence[Mapping[str, Any]], at: datetime
) -> None:
    """Make uploaded files a checkpoint from which attempts continue. A repeated call has no effect.

    :param keep: how many checkpoints of this attempt and those that it continues stay stored.
    :raises ReportRefused: if it lists a file that was not uploaded with that size and digest.
    """
    row = Attempt.objects.select_for_update(no_key=True).get(pk=attempt.pk)
    prefix = f"{CHECKPOINT_UPLOADS}{step}/"
    # Those of a call whose response was lost are uploads no longer.
    uploaded = {
        file["path"]: _listed_blob(file)
        for stored in row.checkpoints.filter(step=step)
        for file in stored.files
    }
    uploaded |= {
        upload.path.removeprefix(prefix): Blob(digest=upload.digest, size=upload.size)
        for upload in row.uploads.filter(path__startswith=prefix)
    }
    _check_listed_files(files, uploaded=uploaded)
    row.checkpoints.update_or_create(
        step=step,
        defaults={
            "files": [dict(file) for file in files],
            "size": sum(file["size"] for file in files),
            "stored_at": at,
        },
    )
    # An attempt uploads one checkpoint at a time: others were given up.
    row.uploads.filter(path__startswith=CHECKPOINT_UPLOADS).delete()
    older = selectors.checkpoints_to_continue(row).values_list("pk", flat=True)[keep:]
    AttemptCheckpoint.objects.filter(pk__in=list(older)).delete()
    if isinstance(row.message, Reason) and row.message.code == CHECKPOINT_NOT_UPLOADED:
        row.message = Reason("launch.state.running", "running")
        row.save(update_fields=["message"])


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFile:
    """A file of a stored checkpoint and where it can be downloaded."""

    path: str
    digest: str
    #: In bytes.
    size: int
    #: A secret until it expires.
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """A checkpoint from which an attempt continues."""

    step: int
    files: tuple[CheckpointFile, ...]


def attempt_checkpoint_download(*, attempt: Attempt) -> StoredCheckpoint | None:
    """The newest checkpoint of the attempt, or of those that it continues, with new URLs; None if there is none.

    :raises StorageUnavailable: if the artifact store does not answer.
    """
    store = registry_selectors.artifact_store()
    if not isinstance(store, SigningStore):
        return None
    for stored in selectors.checkpoints_to_continue(attempt):
        try:
            files = tuple(_file_to_download(store, file) for file in stored.files)
        except BlobMissing as error:
            log.warning(
                "a stored checkpoint has lost a file",
                extra={"attempt": attempt.uid, "step": stored.step, "error": str(error)},
            )
            continue
        return StoredCheckpoint(step=stored.step, files=files)
    return None


def _file_to_download(store: SigningStore, file: Mapping[str, Any]) -> CheckpointFile:
    blob = _listed_blob(file)
    url = store.download(blob.digest).url
    return CheckpointFile(path=file["path"], digest=blob.digest, size=blob.size, url=url)


log = logging.getLogger(__name__)

_SALT = "attempt-upload"
#: Uploads of an attempt that are started and not completed.
MAX_UNFINISHED_UPLOADS = 16
#: Aborted uploads in one run of the clean-up.
_ABORTS_PER_RUN = 200
#: Verifications at a time in the whole product: each reads a file and holds a thread of the web.
CONCURRENT_VERIFICATIONS = 4


class UploadVerificationBusy(ReasonedError):
    """Another verification has the attempt's turn; the request succeeds later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDirectUpload:
    """An upload that an attempt may send to the store."""

    #: For ``attempt_direct_upload_complete``.
    upload: str
    parts: tuple[UploadPart, ...]


def attempt_direct_upload_start(
    *, attempt: Attempt, path: str, sha256: str, size: int, at: datetime
) -> AttemptDirectUpload | None:
    """URLs for the parts of an output file; None if the store signs none.

    A repeated call returns new URLs for the same upload. One of another file at that path is aborted.

    :raises ReportRefused: if the path may leave its folder, or a limit of the attempt is exceeded.
    :raises StorageUnavailable: if the artifact store does not answer.
    """
    check_output_path(path)
    store = registry_selectors.artifact_store()
    if size == 0 or not isinstance(store, UploadSigningStore):
        return None
    unfinished = attempt.unfinished_uploads.filter(path=path, sha256=sha256, size=size)
    if same := unfinished.exclude(reference="").first():
        parts = store.sign_upload(same.reference, size=size)
        return AttemptDirectUpload(upload=_sign_row(same), parts=parts)
    row, replaced = _upload_row_create(attempt=attempt, path=path, sha256=sha256, size=size, at=at)
    if replaced:
        store.abort_upload(replaced)
    started = store.start_upload(size=size)
    if not UnfinishedUpload.objects.filter(pk=row.pk).update(reference=started.reference):
        store.abort_upload(started.reference)
        raise _unknown_upload()
    row.reference = started.reference
    return AttemptDirectUpload(upload=_sign_row(row), parts=started.parts)


def _sign_row(row: UnfinishedUpload) -> str:
    """The same text for the same upload, by which the runtime recognises it."""
    content = {
        "attempt": row.attempt.uid,
        "reference": row.reference,
        "path": row.path,
        "sha256": row.sha256,
        "size": row.size,
    }
    return signing.Signer(salt=_SALT).sign_object(content)


@transaction.atomic
def _upload_row_create(
    *, attempt: Attempt, path: str, sha256: str, size: int, at: datetime
) -> tuple[UnfinishedUpload, str]:
    """Record the upload before it is started; also the reference of the one that it replaces, or ""."""
    # One at a time, so that concurrent requests do not exceed the limits together.
    Attempt.objects.select_for_update(no_key=True).get(pk=attempt.pk)
    earlier = attempt.unfinished_uploads.filter(path=path).first()
    if earlier is not None:
        earlier.delete()
    if attempt.unfinished_uploads.count() >= MAX_UNFINISHED_UPLOADS:
        raise ReportRefused(
            "attempt.upload.too_many",
            "the job attempt has {count} unfinished uploads, which is the limit; complete one first",
            count=MAX_UNFINISHED_UPLOADS,
        )
    check_output_size(attempt=attempt, path=path, size=size)
    row = attempt.unfinished_uploads.create(path=path, sha256=sha256, size=size, started_at=at)
    return row, earlier.reference if earlier is not None else ""


def unfinished_uploads_abort() -> int:
    """Abort the unfinished uploads of ended attempts; return their number."""
    store = registry_selectors.artifact_store()
    ended = UnfinishedUpload.objects.filter(attempt__state__in=ATTEMPT.final).order_by("pk")
    aborted = 0
    for row in ended[:_ABORTS_PER_RUN]:
        try:
            if row.reference and isinstance(store, UploadSigningStore):
                store.abort_upload(row.reference)
        except StorageUnavailable as error:
            log.warning("unfinished uploads are not aborted yet", extra={"error": str(error)})
            break
        row.delete()
        aborted += 1
    return aborted


def attempt_direct_upload_complete(*, attempt: Attempt, upload: str) -> tuple[str, Blob]:
    """Verify and record an uploaded file; its path and what is stored. A repeated call has no effect.

    :raises ReportRefused: if it is not an upload of this attempt.
    :raises UploadIncomplete: if parts are missing or damaged; then the upload has to be repeated.
    :raises UploadVerificationBusy: if another is verified meanwhile; then the call can be repeated.
    :raises StorageUnavailable: if the artifact store does not answer; then the call can be repeated.
    """
    store = registry_selectors.artifact_store()
    if not isinstance(store, UploadSigningStore):
        raise _unknown_upload()
    content = _content_of(upload)
    if content.get("attempt") != attempt.uid:
        raise _unknown_upload()
    # One at a time for an attempt, since a repeated call must not meet the first one half way.
    turn = zlib.crc32(attempt.uid.encode()) % CONCURRENT_VERIFICATIONS
    with session_lock(AdvisoryLock.VERIFY_UPLOAD, turn) as acquired:
        if not acquired:
            raise UploadVerificationBusy(
                "attempt.upload.verification_busy",
                "another upload is verified now; repeat the request",
            )
        path, reference = content["path"], content["reference"]
        announced = Blob(digest=f"sha256:{content['sha256']}", size=content["size"])
        blob = _complete(
            store, attempt=attempt, reference=reference, path=path, announced=announced
        )
    return path, blob


def _complete(
    store: UploadSigningStore, *, attempt: Attempt, reference: str, path: str, announced: Blob
) -> Blob:
    digest, size = announced.digest, announced.size
    row = attempt.unfinished_uploads.filter(path=path, reference=reference)
    try:
        store.complete_upload(reference, digest=digest, size=size)
    except UploadIncomplete:
        row.delete()
        # An earlier call whose response was lost has stored it.
        if not attempt.uploads.filter(path=path, digest=digest, size=size).exists():
            raise
        return announced
    attempt_upload_record(attempt=attempt, path=path, digest=digest, size=size)
    row.delete()
    return announced


def _content_of(upload: str) -> dict[str, Any]:
    """What was signed; empty if it was not signed here."""
    try:
        found: dict[str, Any] = signing.Signer(salt=_SALT).unsign_object(upload)
    except signing.BadSignature:
        return {}
    return found


def _unknown_upload() -> ReportRefused:
    return ReportRefused(
        "attempt.upload.unknown",
        "the upload does not belong to this job attempt or has expired; start the upload again",
    )
