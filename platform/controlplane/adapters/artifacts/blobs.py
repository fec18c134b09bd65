"""What every artifact store checks of a blob, and the errors that all of them raise."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controlplane.ports.artifacts import ArtifactError, BlobMissing, StorageFull

DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_FULL = (errno.ENOSPC, errno.EDQUOT)


def parse_digest(digest: str) -> str:
    """The 64 hexadecimal digits of a digest.

    :raises ArtifactError: if it is none.
    """
    found = DIGEST.fullmatch(digest)
    if found is None:
        raise ArtifactError(
            "artifact.blob.invalid_digest",
            "a digest must be sha256:<64 hex>, got {digest}",
            digest=repr(digest),
        )
    return found[1]


def check_digest(*, expected: str | None, digest: str, size: int) -> None:
    """:raises ArtifactError: if a digest is expected and the content has another one."""
    if expected is not None and digest != expected:
        raise ArtifactError(
            "artifact.blob.digest_mismatch",
            "digest mismatch: expected {expected}, got {digest} for {size} bytes",
            expected=expected,
            size=size,
            digest=digest,
        )


def blob_missing(digest: str) -> BlobMissing:
    return BlobMissing(
        "artifact.blob.not_found", "blob {digest} does not exist in this store", digest=digest
    )


@contextmanager
def translate_disk_errors(folder: Path) -> Iterator[None]:
    """A full disk becomes ``StorageFull``; the caller's own clean-up has run before."""
    try:
        yield
    except OSError as failure:
        if failure.errno in _FULL:
            raise StorageFull(
                "artifact.storage.full",
                "no space left for artifacts in {folder}",
                folder=str(folder),
            ) from failure
        raise
