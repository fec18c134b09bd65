"""Multi-part uploads: in parallel, resumed after a failure, never visible before they are complete.

The parts of an upload whose digest is known stay in the bucket when the upload fails. The next one of the same
digest finds them, compares each with what it reads, and sends only the others. An upload that is not continued is
aborted by ``S3Artifacts.delete_unfinished_writes``.
"""

from __future__ import annotations

import base64
import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from controlplane.adapters.artifacts.blobs import check_digest
from controlplane.adapters.artifacts.s3.client import (
    MOST_PARTS,
    S3Clients,
    error_code,
    is_missing,
    md5_of_etag,
    s3_errors,
)
from controlplane.ports.artifacts import ArtifactError, StorageFull, StorageUnavailable

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef, PartTypeDef

#: How often a request is repeated whose bytes arrived changed.
_CHANGED_ATTEMPTS: Final = 3


def split_parts(chunks: Iterable[bytes], *, size: int) -> Iterator[bytes]:
    """The bytes in parts of that size; the last one may be shorter, none is empty."""
    buffer = bytearray()
    for chunk in chunks:
        buffer += chunk
        while len(buffer) >= size:
            yield bytes(buffer[:size])
            del buffer[:size]
    if buffer:
        yield bytes(buffer)


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedContent:
    digest: str
    size: int


def put_object(clients: S3Clients, *, key: str, content: bytes) -> None:
    """Store a small object by one request.

    :raises StorageUnavailable: if the service repeatedly stores other bytes than were sent.
    """
    digest = hashlib.md5(content, usedforsecurity=False)
    with s3_errors(clients.options):
        for _ in range(_CHANGED_ATTEMPTS):
            response = clients.requests.put_object(
                Bucket=clients.options.bucket,
                Key=key,
                Body=content,
                ContentMD5=base64.b64encode(digest.digest()).decode(),
                **clients.options.encryption_arguments(),
            )
            if md5_of_etag(response) in (None, digest.hexdigest()):
                return
        # A service that verifies Content-MD5 stores nothing in this case.
        clients.requests.delete_object(Bucket=clients.options.bucket, Key=key)
    raise _changed_in_transit(key)


def _changed_in_transit(key: str) -> StorageUnavailable:
    return StorageUnavailable(
        "artifact.upload.changed_in_transit",
        "{key} arrived changed in {count} attempts; check the network and the proxies to the "
        "S3 service",
        key=key,
        count=_CHANGED_ATTEMPTS,
    )


class MultipartUpload:
    """One multi-part upload to a key."""

    def __init__(self, clients: S3Clients, *, key: str, resumes: bool) -> None:
        """:param resumes: continue the newest unfinished upload to that key, and leave it after a failure."""
        self._clients = clients
        self._options = clients.options
        self._key = key
        self._resumes = resumes
        self._upload_id = ""
        self._present: Mapping[int, PartTypeDef] = {}

    def send(self, parts: Iterable[bytes], *, expected: str | None) -> UploadedContent:
        """Upload and complete.

        :raises ArtifactError: if another digest is expected; then the upload is aborted.
        :raises StorageFull: if the service has no room; then the upload is aborted.
        :raises StorageUnavailable: if the service does not answer.
        """
        with s3_errors(self._options):
            self._open()
        try:
            content, completed = self._send_parts(parts)
            check_digest(expected=expected, digest=content.digest, size=content.size)
            with s3_errors(self._options):
                self._complete(completed, size=content.size)
        except StorageFull:
            self._abort()
            raise
        except StorageUnavailable:
            if not self._resumes:
                self._abort()
            raise
        except ArtifactError:
            self._abort()
            raise
        except BaseException:
            # The source failed: its next attempt continues here.
            if not self._resumes:
                self._abort()
            raise
        return content

    def _open(self) -> None:
        client, bucket = self._clients.requests, self._options.bucket
        if self._resumes:
            listed = client.list_multipart_uploads(Bucket=bucket, Prefix=self._key)
            found = [each for each in listed.get("Uploads", ()) if each["Key"] == self._key]
            for upload in sorted(found, key=lambda each: each["Initiated"], reverse=True)[:1]:
                self._upload_id = upload["UploadId"]
                pages = client.get_paginator("list_parts").paginate(
                    Bucket=bucket, Key=self._key, UploadId=self._upload_id
                )
                self._present = {
                    part["PartNumber"]: part for page in pages for part in page.get("Parts", ())
                }
        if not self._upload_id:
            created = client.create_multipart_upload(
                Bucket=bucket, Key=self._key, **self._options.encryption_arguments()
            )
            self._upload_id = created["UploadId"]

    def _send_parts(
        self, parts: Iterable[bytes]
    ) -> tuple[UploadedContent, list[CompletedPartTypeDef]]:
        hashed, size = hashlib.sha256(), 0
        completed: list[CompletedPartTypeDef] = []
        under_way: deque[Future[CompletedPartTypeDef]] = deque()
        with ThreadPoolExecutor(self._options.concurrency, "s3-upload") as pool:
            try:
                for number, part in enumerate(parts, start=1):
                    hashed.update(part)
                    size += len(part)
                    self._check_number(number)
                    while len(under_way) >= self._options.concurrency:
                        completed.append(under_way.popleft().result())
                    under_way.append(pool.submit(self._send_part, number, part))
                completed += [each.result() for each in under_way]
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return UploadedContent(digest=f"sha256:{hashed.hexdigest()}", size=size), completed

    def _check_number(self, number: int) -> None:
        if number > MOST_PARTS:
            raise ArtifactError(
                "artifact.upload.too_large",
                "a file in S3 may have {limit} parts of {size} bytes; increase "
                "NINEFOLD_S3_PART_BYTES",
                limit=MOST_PARTS,
                size=self._options.part_size,
            )

    def _send_part(self, number: int, content: bytes) -> CompletedPartTypeDef:
        digest = hashlib.md5(content, usedforsecurity=False)
        present = self._present.get(number)
        if (
            present
            and present["Size"] == len(content)
            and md5_of_etag({"ETag": present["ETag"]}) == digest.hexdigest()
        ):
            return {"PartNumber": number, "ETag": present["ETag"]}
        with s3_errors(self._options):
            for _ in range(_CHANGED_ATTEMPTS):
                response = self._clients.requests.upload_part(
                    Bucket=self._options.bucket,
                    Key=self._key,
                    UploadId=self._upload_id,
                    PartNumber=number,
                    Body=content,
                    ContentMD5=base64.b64encode(digest.digest()).decode(),
                )
                if md5_of_etag(response) in (None, digest.hexdigest()):
                    return {"PartNumber": number, "ETag": response["ETag"]}
        raise _changed_in_transit(self._key)

    def _complete(self, completed: list[CompletedPartTypeDef], *, size: int) -> None:
        """Publish the object. A repeated request whose first response was lost finds the upload completed."""
        client, bucket = self._clients.requests, self._options.bucket
        try:
            client.complete_multipart_upload(
                Bucket=bucket,
                Key=self._key,
                UploadId=self._upload_id,
                MultipartUpload={"Parts": completed},
            )
        except ClientError as error:
            if error_code(error) != "NoSuchUpload":
                raise
            try:
                found = client.head_object(Bucket=bucket, Key=self._key)["ContentLength"]
            except ClientError as missing:
                if not is_missing(missing):
                    raise
                raise error from missing
            if found != size:
                raise

    def _abort(self) -> None:
        """Delete the parts. What cannot be aborted now is aborted by ``delete_unfinished_writes``."""
        with suppress(ClientError, BotoCoreError):
            self._clients.requests.abort_multipart_upload(
                Bucket=self._options.bucket, Key=self._key, UploadId=self._upload_id
            )
