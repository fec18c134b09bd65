"""Content-addressed artifact store in an S3 bucket.

::

    <prefix>/sha256/ab/cdef…   a blob
    <prefix>/aside/ab/cdef…    a copy of a blob that seems unused, until it is discarded
    <prefix>/incoming/<random> a large blob whose digest is not known before its last byte, or that a job uploads
                               by presigned URL; copied to its name then

An object appears whole or not at all: by one request, by the completion of a multi-part upload, or by a copy. A
blob whose digest is known is uploaded to its name and completed after its digest has been verified.

S3 cannot rename. Setting aside copies, then deletes; restoring copies and leaves the copy in ``aside``, which only
``bring_back`` and ``discard`` delete: both are called by garbage collection alone, of which one run is active at a
time. Hence no interleaving with readers and writers deletes the last copy.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from controlplane.adapters.artifacts.blobs import (
    DIGEST,
    blob_missing,
    check_digest,
    parse_digest,
    translate_disk_errors,
)
from controlplane.adapters.artifacts.s3.client import (
    LARGEST_COPY,
    S3Clients,
    S3Options,
    error_code,
    is_missing,
    s3_errors,
)
from controlplane.adapters.artifacts.s3.direct_uploads import URL_VALIDITY, DirectUpload
from controlplane.adapters.artifacts.s3.reader import BlobReader
from controlplane.adapters.artifacts.s3.uploads import (
    MultipartUpload,
    UploadedContent,
    put_object,
    split_parts,
)
from controlplane.ports.artifacts import (
    Blob,
    BlobDownload,
    StartedUpload,
    StorageUnavailable,
    StoredBlob,
    UploadPart,
)

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import (
        CopySourceTypeDef,
        GetObjectOutputTypeDef,
        MultipartUploadTypeDef,
    )

_BUFFER = 1 << 20
#: A copy in ``aside`` that is younger may belong to a ``set_aside`` that has not deleted the blob yet.
_SETTLED: Final = timedelta(hours=1)


class S3Artifacts:
    """Implements the protocols of ``controlplane.ports.artifacts``.

    The options are those of ``S3Options``.
    """

    def __init__(self, **options: Any) -> None:
        """:raises ValueError: if an option cannot be used."""
        self.options = S3Options(**options)
        self.url_validity = timedelta(hours=self.options.url_hours)
        self.upload_url_validity = URL_VALIDITY
        self.authorities = self.options.read_authorities()
        self._clients = S3Clients(self.options)

    def put(self, chunks: Iterable[bytes], *, expected: str | None = None) -> Blob:
        """Store the bytes and return their digest and size; an upload of the same digest that failed is continued.

        :raises ArtifactError: if ``expected`` is given and the content differs.
        :raises StorageFull: if the service has no room; nothing of the blob stays behind.
        :raises StorageUnavailable: if the service does not answer.
        """
        if expected is not None:
            parse_digest(expected)
        parts = split_parts(chunks, size=self.options.part_size)
        first, second = next(parts, b""), next(parts, None)
        if second is None:
            content = UploadedContent(
                digest=f"sha256:{hashlib.sha256(first).hexdigest()}", size=len(first)
            )
            check_digest(expected=expected, digest=content.digest, size=content.size)
            put_object(self._clients, key=self._blob_key(content.digest), content=first)
        else:
            content = self._put_parts(chain((first, second), parts), expected=expected)
        return Blob(digest=content.digest, size=content.size)

    def _put_parts(self, parts: Iterable[bytes], *, expected: str | None) -> UploadedContent:
        if expected is None:
            incoming = self.options.key("incoming", secrets.token_hex(16))
            upload = MultipartUpload(self._clients, key=incoming, resumes=False)
            content = upload.send(parts, expected=None)
            with s3_errors(self.options):
                try:
                    if not self._copy(incoming, self._blob_key(content.digest)):
                        raise _vanished(incoming)
                finally:
                    self._delete(incoming)
            return content
        key = self._blob_key(expected)
        with s3_errors(self.options):
            exists = self._head(key) is not None
        if not exists:
            upload = MultipartUpload(self._clients, key=key, resumes=True)
            return upload.send(parts, expected=expected)
        content = _read_and_hash(parts)
        check_digest(expected=expected, digest=content.digest, size=content.size)
        with s3_errors(self.options):
            # It may be set aside meanwhile.
            if not self._copy(key, key) and not self._restore(expected):
                raise _vanished(key)
        return content

    def size(self, digest: str) -> int:
        with s3_errors(self.options):
            found = self._head(self._blob_key(digest)) or self._head(self._aside_key(digest))
        if found is None:
            raise blob_missing(digest)
        return int(found["ContentLength"])

    def open(self, digest: str) -> BinaryIO:
        """The blob as a seekable file. Read from its first to its last byte, it is verified."""
        key = self._blob_key(digest)

        def open_range(start: int) -> GetObjectOutputTypeDef:
            ranged: dict[str, Any] = {"Range": f"bytes={start}-"} if start else {}
            try:
                return self._get(key, **ranged)
            except ClientError as error:
                if not is_missing(error) or not self._restore(digest):
                    raise
                return self._get(key, **ranged)

        with s3_errors(self.options):
            try:
                reader = BlobReader(open_range, digest=digest, options=self.options)
            except ClientError as error:
                if is_missing(error):
                    raise blob_missing(digest) from error
                raise
        return cast(BinaryIO, io.BufferedReader(reader, _BUFFER))

    def materialise(self, digest: str, destination: Path) -> None:
        """Download the blob to ``destination``, verified, mode 0444; an existing file is replaced.

        :raises BlobMissing: if it is not here.
        :raises StorageFull: if it does not fit on the disk; no part of it stays behind.
        """
        temporary = destination.with_name(f".{secrets.token_hex(8)}")
        with translate_disk_errors(destination.parent), self.open(digest) as blob:
            try:
                with temporary.open("xb") as copy:
                    shutil.copyfileobj(blob, copy, _BUFFER)
                temporary.chmod(0o444)
                temporary.replace(destination)
            finally:
                with suppress(FileNotFoundError):
                    temporary.unlink()

    def download(self, digest: str) -> BlobDownload:
        """A presigned URL; see ``SigningStore``."""
        key = self._blob_key(digest)
        with s3_errors(self.options):
            found = self._head(key)
            if found is None and self._restore(digest):
                found = self._head(key)
            if found is None:
                raise blob_missing(digest)
            url = self._clients.signing.generate_presigned_url(
                "get_object",
                Params={"Bucket": self.options.bucket, "Key": key},
                ExpiresIn=int(self.url_validity.total_seconds()),
            )
        return BlobDownload(url=url, size=int(found["ContentLength"]))

    def start_upload(self, *, size: int) -> StartedUpload:
        """See ``UploadSigningStore``."""
        reference = DirectUpload.start(self._clients)
        return StartedUpload(reference=reference, parts=self.sign_upload(reference, size=size))

    def sign_upload(self, reference: str, *, size: int) -> tuple[UploadPart, ...]:
        """See ``UploadSigningStore``."""
        upload = DirectUpload(self._clients, reference)
        return upload.sign(size=size, valid=self.upload_url_validity)

    def complete_upload(self, reference: str, *, digest: str, size: int) -> Blob:
        """See ``UploadSigningStore``."""
        upload, target = DirectUpload(self._clients, reference), self._blob_key(digest)
        with s3_errors(self.options):
            upload.complete(size=size)
            upload.verify(digest=digest, size=size)
            if not self._copy(upload.key, target):
                raise _vanished(upload.key)
            upload.delete()
        return Blob(digest=digest, size=size)

    def abort_upload(self, reference: str) -> None:
        """See ``UploadSigningStore``."""
        with s3_errors(self.options):
            DirectUpload(self._clients, reference).abort()

    def delete(self, digest: str) -> None:
        with s3_errors(self.options):
            self._delete(self._blob_key(digest))
        self.discard(digest)

    def blobs(self, *, after: str = "") -> Iterator[StoredBlob]:
        with s3_errors(self.options):
            yield from heapq.merge(
                self._list_area("sha256", after=after),
                self._list_area("aside", after=after),
                key=lambda blob: (blob.digest, blob.set_aside),
            )

    def set_aside(self, digest: str) -> None:
        with s3_errors(self.options):
            # First copy, then delete: a crash in between leaves both, and the next run sets it aside again.
            if self._copy(self._blob_key(digest), self._aside_key(digest)):
                self._delete(self._blob_key(digest))

    def bring_back(self, digest: str) -> None:
        with s3_errors(self.options):
            if self._head(self._blob_key(digest)) is None:
                self._restore(digest)
                return
            aside = self._head(self._aside_key(digest))
            if aside is not None and datetime.now(UTC) - aside["LastModified"] > _SETTLED:
                self._delete(self._aside_key(digest))

    def discard(self, digest: str) -> None:
        with s3_errors(self.options):
            self._delete(self._aside_key(digest))

    def delete_unfinished_writes(self, *, before: datetime) -> int:
        """Abort multi-part uploads of which no part came after that instant, and delete old incoming objects."""
        cleared = 0
        client, bucket = self._clients.requests, self.options.bucket
        with s3_errors(self.options):
            for upload in list(self._unfinished_uploads()):
                if upload["Initiated"] >= before:
                    continue
                where: Any = {
                    "Bucket": bucket,
                    "Key": upload["Key"],
                    "UploadId": upload["UploadId"],
                }
                with _ignoring("NoSuchUpload"):
                    pages = client.get_paginator("list_parts").paginate(**where)
                    parts = [part for page in pages for part in page.get("Parts", ())]
                    if all(part["LastModified"] < before for part in parts):
                        client.abort_multipart_upload(**where)
                        cleared += sum(part["Size"] for part in parts)
            listed = client.get_paginator("list_objects_v2").paginate(
                Bucket=bucket, Prefix=self.options.key("incoming", "")
            )
            for found in [each for page in listed for each in page.get("Contents", ())]:
                if found["LastModified"] < before:
                    self._delete(found["Key"])
                    cleared += found["Size"]
        return cleared

    def _unfinished_uploads(self) -> Iterator[MultipartUploadTypeDef]:
        """Those of this store, which may share its bucket; none where the service cannot list them."""
        listing = self._clients.requests.get_paginator("list_multipart_uploads")
        with _ignoring("NotImplemented", "MethodNotAllowed"):
            for area in ("sha256", "aside", "incoming"):
                root = self.options.key(area, "")
                for page in listing.paginate(Bucket=self.options.bucket, Prefix=root):
                    yield from page.get("Uploads", ())

    def _list_area(self, area: str, *, after: str) -> Iterator[StoredBlob]:
        root = self.options.key(area, "")
        name = after.removeprefix("sha256:")
        starting: dict[str, Any] = {"StartAfter": f"{root}{name[:2]}/{name[2:]}"} if name else {}
        pages = self._clients.requests.get_paginator("list_objects_v2").paginate(
            Bucket=self.options.bucket, Prefix=root, **starting
        )
        for page in pages:
            for found in page.get("Contents", ()):
                digest = f"sha256:{found['Key'].removeprefix(root).replace('/', '')}"
                if DIGEST.fullmatch(digest):
                    yield StoredBlob(
                        digest=digest,
                        size=found["Size"],
                        since=found["LastModified"],
                        set_aside=area == "aside",
                    )

    def _blob_key(self, digest: str) -> str:
        name = parse_digest(digest)
        return self.options.key("sha256", name[:2], name[2:])

    def _aside_key(self, digest: str) -> str:
        name = parse_digest(digest)
        return self.options.key("aside", name[:2], name[2:])

    def _head(self, key: str) -> Any:
        """Headers of the object, or None without one."""
        try:
            return self._clients.requests.head_object(Bucket=self.options.bucket, Key=key)
        except ClientError as error:
            if is_missing(error):
                return None
            raise

    def _get(self, key: str, **ranged: Any) -> GetObjectOutputTypeDef:
        return self._clients.requests.get_object(Bucket=self.options.bucket, Key=key, **ranged)

    def _delete(self, key: str) -> None:
        with _ignoring("NoSuchKey"):
            self._clients.requests.delete_object(Bucket=self.options.bucket, Key=key)

    def _restore(self, digest: str) -> bool:
        """Copy a blob back that is set aside; whether there is one."""
        return self._copy(self._aside_key(digest), self._blob_key(digest))

    def _copy(self, source: str, target: str) -> bool:
        """Copy an object inside the bucket, with a new time; False if it does not exist."""
        where: CopySourceTypeDef = {"Bucket": self.options.bucket, "Key": source}
        created = {
            # A copy onto itself is refused unless something of it changes.
            "Metadata": {"stored-at": datetime.now(UTC).isoformat()},
            "MetadataDirective": "REPLACE",
            **self.options.encryption_arguments(),
        }
        transfer = TransferConfig(
            multipart_threshold=LARGEST_COPY,
            multipart_chunksize=LARGEST_COPY,
            max_concurrency=self.options.concurrency,
        )
        try:
            self._clients.requests.copy(
                where, self.options.bucket, target, ExtraArgs=created, Config=transfer
            )
        except ClientError as error:
            if is_missing(error):
                return False
            raise
        return True


def _read_and_hash(parts: Iterable[bytes]) -> UploadedContent:
    hashed, size = hashlib.sha256(), 0
    for part in parts:
        hashed.update(part)
        size += len(part)
    return UploadedContent(digest=f"sha256:{hashed.hexdigest()}", size=size)


def _vanished(key: str) -> StorageUnavailable:
    return StorageUnavailable(
        "artifact.upload.vanished",
        "{key} was deleted while it was being stored; repeat the upload",
        key=key,
    )


@contextmanager
def _ignoring(*codes: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error_code(error) not in codes:
            raise
