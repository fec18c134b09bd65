"""Output files that attempts upload straight to the artifact store, by presigned URL.

::

    attempt ── start ──▶ web ── creates the upload, signs URLs ──▶ store
    attempt ── PUT parts ────────────────────────────────────────▶ store
    attempt ── start ──▶ web ── signs URLs again that have expired
    attempt ── complete ▶ web ── verifies size and digest, stores ▶ store
    when the attempt has ended ── aborts what is unfinished ───────▶ store

Without such a store, and for files that do not arrive, attempts send files to the web (``attempt_file_receive``).
Both ways end in the same row, which the manifest refers to.
"""

from __future__ import annotations

import logging
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core import signing
from django.db import transaction

from apps.jobs.models import Attempt, UnfinishedUpload
from apps.jobs.services.attempt_reports import (
    ReportRefused,
    attempt_upload_record,
    check_output_path,
    check_output_size,
)
from apps.models import selectors as registry_selectors
from controlplane.domain.common.reasons import Reason
from controlplane.domain.jobs.lifecycle import ATTEMPT
from controlplane.persistence.advisory_locks import AdvisoryLock, session_lock
from controlplane.ports.artifacts import (
    Blob,
    StorageUnavailable,
    UploadIncomplete,
    UploadPart,
    UploadSigningStore,
)

log = logging.getLogger(__name__)

_SALT = "attempt-upload"
#: Uploads of an attempt that are started and not completed.
MAX_UNFINISHED_UPLOADS = 16
#: Aborted uploads in one run of the clean-up.
_ABORTS_PER_RUN = 200
#: Verifications at a time in the whole product: each reads a file and holds a thread of the web.
CONCURRENT_VERIFICATIONS = 4


class UploadVerificationBusy(Exception):
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
            Reason(
                "attempt.upload.too_many",
                "the job attempt has {count} unfinished uploads, which is the limit; complete one first",
                count=MAX_UNFINISHED_UPLOADS,
            )
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
                Reason(
                    "attempt.upload.verification_busy",
                    "another upload is verified now; repeat the request",
                )
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
        Reason(
            "attempt.upload.unknown",
            "the upload does not belong to this job attempt or has expired; start the upload again",
        )
    )
