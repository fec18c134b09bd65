"""Uploads by presigned URL: a multi-part upload to a random key, verified before it gets the name of its digest.

::

    start      create a multi-part upload of incoming/<random>; sign one URL for each part
    sign       sign the URLs again, which expire after ``URL_VALIDITY``
    PUT …      by whoever has the URLs, each part with exactly its announced size
    complete   complete the upload, read and hash the object, copy it to sha256/…, delete it from incoming
    abort      delete the parts: from then on the service refuses the URLs

URLs of parts are useless once the upload is complete, so what was hashed cannot be replaced before it is copied.
It must be hashed here: blobs are shared by their digest, and an uploader must not store other bytes under it.
What nobody completes is removed by ``S3Artifacts.delete_unfinished_writes``.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from controlplane.adapters.artifacts.s3.client import S3Clients, error_code, is_missing, s3_errors
from controlplane.adapters.artifacts.s3.reader import BlobReader
from controlplane.domain.common.resources import MIB
from controlplane.ports.artifacts import (
    ArtifactError,
    StorageUnavailable,
    UploadIncomplete,
    UploadPart,
)

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef, GetObjectOutputTypeDef

#: Of the URL of a part, which can be signed again: longer than a part takes, and than clocks differ.
URL_VALIDITY: Final = timedelta(minutes=30)
#: URLs of one upload: all of them are in one response.
_MOST_URLS: Final = 1000
_BUFFER: Final = 1 << 20


class DirectUpload:
    """One upload of which others send the parts."""

    def __init__(self, clients: S3Clients, reference: str) -> None:
        name, _, self._upload_id = reference.partition("/")
        self._clients = clients
        self.key = clients.options.key("incoming", name)

    @classmethod
    def start(cls, clients: S3Clients) -> str:
        """The reference of a new upload."""
        options, name = clients.options, secrets.token_hex(16)
        with s3_errors(options):
            created = clients.requests.create_multipart_upload(
                Bucket=options.bucket,
                Key=options.key("incoming", name),
                **options.encryption_arguments(),
            )
        return f"{name}/{created['UploadId']}"

    def sign(self, *, size: int, valid: timedelta) -> tuple[UploadPart, ...]:
        """See ``UploadSigningStore.sign_upload``."""
        options = self._clients.options
        step = _part_size(size, at_least=options.part_size)
        parts = []
        with s3_errors(options):
            for number, offset in enumerate(range(0, size, step), start=1):
                length = min(step, size - offset)
                # The signature covers the length: nobody stores more than was announced.
                signed = {**self._place(), "PartNumber": number, "ContentLength": length}
                url = self._clients.signing.generate_presigned_url(
                    "upload_part", Params=signed, ExpiresIn=int(valid.total_seconds())
                )
                parts.append(UploadPart(url=url, offset=offset, size=length))
        return tuple(parts)

    def complete(self, *, size: int) -> None:
        """Make one object of the parts; a repeated call has no effect.

        :raises UploadIncomplete: if parts are missing.
        """
        client, where = self._clients.requests, self._place()
        try:
            pages = client.get_paginator("list_parts").paginate(**where)
            parts = [part for page in pages for part in page.get("Parts", ())]
            if sum(part["Size"] for part in parts) != size:
                client.abort_multipart_upload(**where)
                raise _incomplete(found=sum(part["Size"] for part in parts), size=size)
            completed: list[CompletedPartTypeDef] = [
                {"PartNumber": part["PartNumber"], "ETag": part["ETag"]} for part in parts
            ]
            client.complete_multipart_upload(**where, MultipartUpload={"Parts": completed})
        except ClientError as error:
            if error_code(error) != "NoSuchUpload":
                raise
            # It is complete, if an earlier call got so far.

    def abort(self) -> None:
        """Delete the parts, and the object if they have become one."""
        client, where = self._clients.requests, self._place()
        try:
            client.abort_multipart_upload(**where)
        except ClientError as error:
            if error_code(error) != "NoSuchUpload":
                raise
            client.delete_object(Bucket=where["Bucket"], Key=self.key)

    def verify(self, *, digest: str, size: int) -> None:
        """Read the object. One with other bytes is deleted.

        :raises UploadIncomplete: if it does not exist, or size or digest differ.
        """
        options = self._clients.options

        def open_range(start: int) -> GetObjectOutputTypeDef:
            ranged: dict[str, Any] = {"Range": f"bytes={start}-"} if start else {}
            return self._clients.requests.get_object(Bucket=options.bucket, Key=self.key, **ranged)

        try:
            with BlobReader(open_range, digest=digest, options=options) as content:
                if content.size != size:
                    raise _incomplete(found=content.size, size=size)
                while content.read(_BUFFER):
                    pass
        except ClientError as error:
            if not is_missing(error):
                raise
            raise _incomplete(found=0, size=size) from error
        except StorageUnavailable:
            raise
        except UploadIncomplete:
            self.delete()
            raise
        except ArtifactError as error:
            self.delete()
            raise UploadIncomplete(str(error)) from error

    def _place(self) -> Any:
        bucket = self._clients.options.bucket
        return {"Bucket": bucket, "Key": self.key, "UploadId": self._upload_id}

    def delete(self) -> None:
        """What cannot be deleted now is deleted by ``delete_unfinished_writes``."""
        with suppress(ClientError, BotoCoreError):
            self._clients.requests.delete_object(Bucket=self._clients.options.bucket, Key=self.key)


def _part_size(size: int, *, at_least: int) -> int:
    """Bytes of one part, in whole MiB above the least."""
    needed = -(-size // _MOST_URLS)
    return at_least if needed <= at_least else -(-needed // MIB) * MIB


def _incomplete(*, found: int, size: int) -> UploadIncomplete:
    return UploadIncomplete(
        "artifact.upload.incomplete",
        "{found} of {size} bytes were uploaded; repeat the upload",
        found=found,
        size=size,
    )
