"""Artifacts in memory, with the same refusals as the real stores."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from controlplane.ports.artifacts import ArtifactError, Blob, BlobMissing, StorageFull, StoredBlob


def _system_clock() -> datetime:
    return datetime.now(UTC)


class MemoryArtifacts:
    """Implements ``controlplane.ports.artifacts.ArtifactStore``; ``capacity`` is in bytes."""

    def __init__(
        self, *, capacity: int | None = None, clock: Callable[[], datetime] = _system_clock
    ) -> None:
        self.contents: dict[str, bytes] = {}
        self.capacity = capacity
        self._clock = clock
        self._since: dict[str, datetime] = {}
        self._aside: set[str] = set()

    def put(self, chunks: Iterable[bytes], *, expected: str | None = None) -> Blob:
        content = b"".join(chunks)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if expected is not None and digest != expected:
            raise ArtifactError(f"expected {expected}, the {len(content)} bytes are {digest}")
        if digest not in self.contents:
            used = sum(len(blob) for blob in self.contents.values())
            if self.capacity is not None and used + len(content) > self.capacity:
                raise StorageFull(
                    f"{len(content)} bytes do not fit: {used} of {self.capacity} used"
                )
            self.contents[digest] = content
        self._since[digest] = self._clock()
        self._aside.discard(digest)
        return Blob(digest=digest, size=len(content))

    def size(self, digest: str) -> int:
        return len(self._blob(digest))

    def open(self, digest: str) -> BinaryIO:
        self.bring_back(digest)
        return io.BytesIO(self._blob(digest))

    def materialise(self, digest: str, destination: Path) -> None:
        content = self._blob(digest)
        self.bring_back(digest)
        destination.unlink(missing_ok=True)
        destination.write_bytes(content)
        destination.chmod(0o444)

    def delete(self, digest: str) -> None:
        self.contents.pop(digest, None)
        self._aside.discard(digest)

    def blobs(self, *, after: str = "") -> Iterator[StoredBlob]:
        for digest in sorted(self.contents):
            if digest > after:
                yield StoredBlob(
                    digest=digest,
                    size=len(self.contents[digest]),
                    since=self._since[digest],
                    set_aside=digest in self._aside,
                )

    def set_aside(self, digest: str) -> None:
        if digest in self.contents:
            self._since[digest] = self._clock()
            self._aside.add(digest)

    def bring_back(self, digest: str) -> None:
        self._aside.discard(digest)

    def discard(self, digest: str) -> None:
        if digest in self._aside:
            self.delete(digest)

    def clear_unfinished(self, *, before: datetime) -> int:
        return 0

    def _blob(self, digest: str) -> bytes:
        if digest not in self.contents:
            raise BlobMissing(f"there is no blob {digest} in this store")
        return self.contents[digest]
