"""Artifacts in memory, with the same refusals as the real stores."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from controlplane.ports.artifacts import ArtifactError, Blob, BlobMissing, StorageFull


class MemoryArtifacts:
    """Implements ``controlplane.ports.artifacts.ArtifactStore``; ``capacity`` is in bytes."""

    def __init__(self, *, capacity: int | None = None) -> None:
        self.blobs: dict[str, bytes] = {}
        self.capacity = capacity

    def put(self, chunks: Iterable[bytes], *, expected: str | None = None) -> Blob:
        content = b"".join(chunks)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if expected is not None and digest != expected:
            raise ArtifactError(f"expected {expected}, the {len(content)} bytes are {digest}")
        if digest not in self.blobs:
            used = sum(len(blob) for blob in self.blobs.values())
            if self.capacity is not None and used + len(content) > self.capacity:
                raise StorageFull(
                    f"{len(content)} bytes do not fit: {used} of {self.capacity} used"
                )
            self.blobs[digest] = content
        return Blob(digest=digest, size=len(content))

    def size(self, digest: str) -> int:
        return len(self._blob(digest))

    def open(self, digest: str) -> BinaryIO:
        return io.BytesIO(self._blob(digest))

    def materialise(self, digest: str, destination: Path) -> None:
        content = self._blob(digest)
        destination.unlink(missing_ok=True)
        destination.write_bytes(content)
        destination.chmod(0o444)

    def delete(self, digest: str) -> None:
        self.blobs.pop(digest, None)

    def _blob(self, digest: str) -> bytes:
        if digest not in self.blobs:
            raise BlobMissing(f"there is no blob {digest} in this store")
        return self.blobs[digest]
