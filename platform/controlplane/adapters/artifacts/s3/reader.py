"""Read an object as a file: resumed after a broken connection, verified at its end."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError
from urllib3.exceptions import HTTPError

from controlplane.adapters.artifacts.s3.client import S3Options, s3_errors
from controlplane.ports.artifacts import ArtifactError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0

#: Requests the object from that offset on.
OpenRange = Callable[[int], "GetObjectOutputTypeDef"]


class BlobReader(io.RawIOBase):
    """The bytes of one blob.

    A connection that breaks is replaced by a request for the rest, at most ``attempts`` times in a row without
    progress. What is read from the first to the last byte is verified by SHA-256 before the end is reported.

    :raises ArtifactError: from ``read``, if the bytes are others than the digest says.
    :raises StorageUnavailable: from ``read``, if the service does not answer.
    """

    def __init__(self, open_range: OpenRange, *, digest: str, options: S3Options) -> None:
        super().__init__()
        self._open_range = open_range
        self._digest = digest
        self._options = options
        self._hash = hashlib.sha256()
        self._hashed = 0
        self._position = 0
        response = open_range(0)
        self.size = int(response["ContentLength"])
        self._body: Any = response["Body"]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        target = max(0, start + offset)
        if target != self._position:
            self._drop_body()
            self._position = target
        return self._position

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        with s3_errors(self._options):
            content = self._read_some(len(view))
        view[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._drop_body()
        super().close()

    def _read_some(self, limit: int) -> bytes:
        """Up to that many bytes; none only at the end."""
        failures, pause = 0, _FIRST_PAUSE
        while self._position < self.size and limit:
            failure: Exception = HTTPError("the response ended before its announced length")
            try:
                if self._body is None:
                    self._body = self._open_range(self._position)["Body"]
                content: bytes = self._body.read(min(limit, self.size - self._position))
            except (BotoCoreError, HTTPError) as error:
                content, failure = b"", error
            except OSError as error:
                content, failure = b"", HTTPError(str(error))
            if content:
                self._advance(content)
                return content
            failures += 1
            if failures >= self._options.attempts:
                raise failure
            self._drop_body()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return b""

    def _advance(self, content: bytes) -> None:
        if self._hashed == self._position:
            self._hash.update(content)
            self._hashed += len(content)
        self._position += len(content)
        if self._hashed == self.size and f"sha256:{self._hash.hexdigest()}" != self._digest:
            raise ArtifactError(
                "artifact.blob.damaged",
                "the stored bytes of {digest} have another digest: {found}",
                digest=self._digest,
                found=f"sha256:{self._hash.hexdigest()}",
            )

    def _drop_body(self) -> None:
        body, self._body = self._body, None
        if body is not None:
            with suppress(BotoCoreError, HTTPError, OSError):
                body.close()
