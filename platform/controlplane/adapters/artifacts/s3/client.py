"""The S3 client: its options, its time-outs and retries, and its errors as errors of the port.

Every request is repeated with exponential back-off and jitter at most ``attempts`` times, so a call that finds no
server ends after ``attempts × (connect_seconds or read_seconds)`` plus the pauses, of 20 s at most each.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from controlplane.domain.common.resources import GIB, MIB
from controlplane.ports.artifacts import ArtifactError, StorageFull, StorageUnavailable

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

#: Values of ``encryption``: the bucket's default, SSE-S3, SSE-KMS.
ENCRYPTIONS: Final = ("", "AES256", "aws:kms")
#: Maximum number of parts of an upload, in every S3 service.
MOST_PARTS: Final = 10_000
#: Objects up to this size are copied by one request; S3 allows 5 GiB, which takes some services minutes.
LARGEST_COPY = 1 * GIB
#: Longest validity of a presigned URL of signature version 4.
LONGEST_VALIDITY = timedelta(days=7)

# It logs at INFO where it found its credentials.
logging.getLogger("botocore.credentials").setLevel(logging.WARNING)

_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
_FULL = frozenset(
    {"507", "InsufficientStorage", "QuotaExceeded", "StorageFull", "XMinioStorageFull"}
)
_DENIED = frozenset(
    {
        "401",
        "403",
        "AccessDenied",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "SignatureDoesNotMatch",
    }
)
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options:
    """Where the bucket is and how it is used. Credentials come from the environment, as for every AWS client."""

    bucket: str
    #: Before every key, without slashes at its ends.
    prefix: str = ""
    #: Empty: Amazon's endpoint of the region.
    endpoint_url: str = ""
    #: The endpoint in presigned URLs, where jobs reach the service at another address; empty: the same.
    download_endpoint_url: str = ""
    region: str = ""
    #: ``https://host/bucket/key`` instead of ``https://bucket.host/key``.
    path_style: bool = False
    #: PEM file with the authorities that sign for the endpoints, instead of those of botocore; empty: these.
    ca_file: str = ""
    #: One of ``ENCRYPTIONS``.
    encryption: str = ""
    #: Key for ``aws:kms``; empty: the service's default key.
    kms_key_id: str = ""
    url_hours: int = 24
    #: Bytes of one part of a multi-part upload; 10,000 parts are the limit of an object.
    part_size: int = 32 * MIB
    #: Requests of one upload at the same time; it buffers as many parts and one more.
    concurrency: int = 4
    attempts: int = 5
    connect_seconds: float = 5.0
    read_seconds: float = 60.0

    def __post_init__(self) -> None:
        """:raises ValueError: if a value cannot be used."""
        if not self.bucket:
            raise ValueError("bucket is empty; it must be the name of an S3 bucket")
        if self.prefix != self.prefix.strip("/"):
            raise ValueError(f"prefix is {self.prefix!r}; it must not begin or end with a slash")
        if self.encryption not in ENCRYPTIONS:
            raise ValueError(f"encryption is {self.encryption!r}; it must be AES256 or aws:kms")
        if self.kms_key_id and self.encryption != "aws:kms":
            raise ValueError("kms_key_id is set; encryption must then be aws:kms")
        if not timedelta(0) < timedelta(hours=self.url_hours) <= LONGEST_VALIDITY:
            raise ValueError(f"url_hours is {self.url_hours}; it must be from 1 to 168")

    def key(self, *parts: str) -> str:
        return "/".join((self.prefix, *parts) if self.prefix else parts)

    def read_authorities(self) -> str:
        """The certificates of ``ca_file``, and nothing else that is in it: workloads get them.

        :raises ValueError: if it cannot be read, or has none.
        """
        if not self.ca_file:
            return ""
        try:
            found = _CERTIFICATE.findall(
                Path(self.ca_file).read_text(encoding="utf-8", errors="replace")
            )
        except OSError as error:
            raise ValueError(f"ca_file is {self.ca_file!r}: {error.strerror}") from error
        if not found:
            raise ValueError(f"ca_file is {self.ca_file!r}, which has no PEM certificate")
        return "".join(f"{each}\n" for each in found)

    def encryption_arguments(self) -> dict[str, Any]:
        """For requests that create an object."""
        found: dict[str, Any] = {}
        if self.encryption:
            found["ServerSideEncryption"] = self.encryption
        if self.kms_key_id:
            found["SSEKMSKeyId"] = self.kms_key_id
        return found


class S3Clients:
    """Clients of one bucket, created when first used and anew in a forked process."""

    def __init__(self, options: S3Options) -> None:
        self.options = options
        self._lock = threading.Lock()
        self._process = 0
        self._clients: dict[str, S3Client] = {}

    @property
    def requests(self) -> S3Client:
        return self._client(self.options.endpoint_url)

    @property
    def signing(self) -> S3Client:
        """For presigned URLs; it sends no requests."""
        return self._client(self.options.download_endpoint_url or self.options.endpoint_url)

    def _client(self, endpoint: str) -> S3Client:
        with self._lock:
            if self._process != os.getpid():
                self._process, self._clients = os.getpid(), {}
            if endpoint not in self._clients:
                self._clients[endpoint] = _create_client(self.options, endpoint)
            return self._clients[endpoint]


def _create_client(options: S3Options, endpoint: str) -> S3Client:
    config = Config(
        signature_version="s3v4",
        connect_timeout=options.connect_seconds,
        read_timeout=options.read_seconds,
        retries={"mode": "standard", "total_max_attempts": options.attempts},
        max_pool_connections=max(16, 4 * options.concurrency),
        # CRC trailers are unknown to many compatible services; MD5 and the signed SHA-256 of the body are not.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={
            "addressing_style": "path" if options.path_style else "auto",
            "payload_signing_enabled": True,
        },
    )
    return boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint or None,
        region_name=options.region or "us-east-1",
        verify=options.ca_file or None,
        config=config,
    )


def error_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def is_missing(error: ClientError) -> bool:
    """Whether the object does not exist; a missing bucket is another error."""
    return error_code(error) in _MISSING


def md5_of_etag(response: Mapping[str, Any]) -> str | None:
    """The MD5 that the service reports of what it stored; None where its ETag is none."""
    if str(response.get("ServerSideEncryption", "")).startswith("aws:kms"):
        return None
    found = _MD5.fullmatch(str(response.get("ETag", "")))
    return found[1] if found else None


@contextmanager
def s3_errors(options: S3Options) -> Iterator[None]:
    """Errors of the client become errors of the port.

    :raises StorageFull: if the service has no room.
    :raises StorageUnavailable: if it does not answer, answers with an error, or denies access.
    """
    try:
        yield
    except ClientError as error:
        raise _port_error(error, options) from error
    except (BotoCoreError, HTTPError) as error:
        raise StorageUnavailable(
            "artifact.storage.unreachable",
            "the S3 bucket {bucket} cannot be reached: {error}",
            bucket=options.bucket,
            error=str(error),
        ) from error


def _port_error(error: ClientError, options: S3Options) -> ArtifactError:
    code = error_code(error)
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in _FULL or status == 507:
        return StorageFull(
            "artifact.storage.bucket_full",
            "no space left for artifacts in the S3 bucket {bucket}",
            bucket=options.bucket,
        )
    if code == "NoSuchBucket":
        return StorageUnavailable(
            "artifact.storage.bucket_missing",
            "the S3 bucket {bucket} does not exist; create it, or correct NINEFOLD_S3_BUCKET",
            bucket=options.bucket,
        )
    if code in _DENIED:
        return StorageUnavailable(
            "artifact.storage.access_denied",
            "the S3 service denies access to the bucket {bucket} ({code}); check the "
            "credentials and the policy of the bucket",
            bucket=options.bucket,
            code=code,
        )
    return StorageUnavailable(
        "artifact.storage.error_response",
        "the S3 service answered {status} {code} for the bucket {bucket}: {error}",
        status=status,
        code=code,
        bucket=options.bucket,
        error=str(error.response.get("Error", {}).get("Message", "")),
    )
