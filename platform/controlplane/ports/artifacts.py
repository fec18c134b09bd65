"""The artifact store port: immutable blobs by content digest.

A digest is ``sha256:<64 hex>``. A *tree* (a model version, a dataset version, a checkpoint) is a mapping
of relative path → digest kept in the database; the store knows blobs only.

The store alone does not know whether a blob is still referenced, and the same bytes may be stored again at the
moment at which garbage collection finds them unreferenced. Hence a blob is deleted in two steps: it is *set
aside*, from where storing or reading it brings it back, and *discarded* only later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from controlplane.domain.common.reasons import ReasonedError


class ArtifactError(ReasonedError):
    """The store refused or failed a call."""


class BlobMissing(ArtifactError):
    """No blob of that digest is here."""


class StorageFull(ArtifactError):
    """No room is left; nothing partial stays behind."""


class StorageUnavailable(ArtifactError):
    """The store does not answer or denies access; the same call may succeed later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    digest: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlob:
    """A blob as the store lists it."""

    digest: str
    size: int
    #: When it was last stored, or set aside.
    since: datetime
    set_aside: bool = False


@runtime_checkable
class ArtifactStore(Protocol):
    def put(self, chunks: Iterable[bytes], *, expected: str | None = None) -> Blob:
        """Store the bytes and return their digest; storing twice keeps one, with a new time.

        :raises ArtifactError: if ``expected`` is given and the content differs.
        :raises StorageFull: if the disk is full.
        """

    def size(self, digest: str) -> int:
        """:raises BlobMissing: if it is not here."""

    def open(self, digest: str) -> BinaryIO:
        """:raises BlobMissing: if it is not here."""

    def materialise(self, digest: str, destination: Path) -> None:
        """Make the blob readable at ``destination`` without its reader being able to change the stored one.

        :raises BlobMissing: if it is not here.
        """

    def delete(self, digest: str) -> None:
        """Delete at once, set aside or not. A missing one is no error."""

    def blobs(self, *, after: str = "") -> Iterator[StoredBlob]:
        """Every blob with a digest greater than ``after``, in the order of digests.

        One that is set aside is marked so; one that has been stored again since is listed twice.
        """

    def set_aside(self, digest: str) -> None:
        """Mark it as unreferenced. Storing, opening or materialising restores it. A missing one is no error."""

    def bring_back(self, digest: str) -> None:
        """Undo ``set_aside``. A missing one is no error."""

    def discard(self, digest: str) -> None:
        """Delete what is set aside under that digest, and nothing else. A missing one is no error."""

    def delete_unfinished_writes(self, *, before: datetime) -> int:
        """Delete files that crashed writers left before that instant; return their bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobDownload:
    """Where a blob can be downloaded without credentials. The URL is a secret until it expires."""

    url: str
    #: In bytes.
    size: int


@runtime_checkable
class SigningStore(Protocol):
    """A store whose blobs can be downloaded by presigned URL, so that a cluster needs no shared folder."""

    #: How long a presigned URL is valid.
    url_validity: timedelta
    #: PEM certificates of the authorities that sign for its URLs; empty: those of every system.
    authorities: str

    def download(self, digest: str) -> BlobDownload:
        """A URL for HTTP GET with ``Range``, valid for ``url_validity``; a blob that is set aside is restored.

        :raises BlobMissing: if it is not here.
        :raises StorageUnavailable: if the store does not answer.
        """


class UploadIncomplete(ArtifactError):
    """Parts of an upload are missing, or its bytes have another digest; it has to be repeated from its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPart:
    """Where one part of a blob can be uploaded without credentials. The URL is a secret until it expires."""

    #: For HTTP PUT of exactly ``size`` bytes.
    url: str
    #: First byte of the part in the blob.
    offset: int
    #: In bytes.
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedUpload:
    """A blob that is uploaded in parts by presigned URL."""

    #: Identifies the upload in later calls; only the store reads it.
    reference: str
    parts: tuple[UploadPart, ...]


@runtime_checkable
class UploadSigningStore(Protocol):
    """A store that takes blobs by presigned URL, so that large outputs do not pass through the web."""

    #: How long the URL of a part is valid.
    upload_url_validity: timedelta

    def start_upload(self, *, size: int) -> StartedUpload:
        """URLs for the parts of a blob of that size, which is at least 1.

        :raises StorageUnavailable: if the store does not answer.
        """

    def sign_upload(self, reference: str, *, size: int) -> tuple[UploadPart, ...]:
        """New URLs for all parts of a started upload; parts that were uploaded stay.

        :raises StorageUnavailable: if the store has no credentials.
        """

    def complete_upload(self, reference: str, *, digest: str, size: int) -> Blob:
        """Verify what was uploaded and store it under its digest; until then it is visible to nobody.

        Nothing but ``start_upload`` may have produced the reference. After a failure of the store the same call
        continues.

        :raises UploadIncomplete: if parts are missing, or size or digest differ; nothing stays behind.
        :raises StorageUnavailable: if the store does not answer.
        """

    def abort_upload(self, reference: str) -> None:
        """Delete what was uploaded; its URLs are useless from then on. A repeated call has no effect.

        :raises StorageUnavailable: if the store does not answer.
        """
