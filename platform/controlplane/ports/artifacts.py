"""The artifact store port: immutable blobs by content digest.

A digest is ``sha256:<64 hex>``. A *tree* (a model version, a dataset version, a checkpoint) is a mapping
of relative path → digest kept in the database; the store knows blobs only.

Nobody can see from the store alone whether a blob is still needed, and somebody may store the same bytes
at the very moment at which they are found to be needless. Hence a blob goes in two steps: it is *set aside*,
from where whoever stores or reads it brings it back, and *discarded* only a good while later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable


class ArtifactError(Exception):
    """The store refused or failed a call."""


class BlobMissing(ArtifactError):
    """No blob of that digest is here."""


class StorageFull(ArtifactError):
    """No room is left; nothing partial stays behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    digest: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBlob:
    """A blob as the store lists it."""

    digest: str
    size: int
    #: When it was last stored, or set aside.
    since: datetime
    set_aside: bool = False


@runtime_checkable
class ArtifactStore(Protocol):
    def put(self, chunks: Iterable[bytes], *, expected: str | None = None) -> Blob:
        """Store the bytes and say what they are; storing twice keeps one, which is new again.

        :raises ArtifactError: if ``expected`` is given and the content differs.
        :raises StorageFull: if the disk is full.
        """
        ...

    def size(self, digest: str) -> int:
        """:raises BlobMissing: if it is not here."""
        ...

    def open(self, digest: str) -> BinaryIO:
        """:raises BlobMissing: if it is not here."""
        ...

    def materialise(self, digest: str, destination: Path) -> None:
        """Make the blob readable at ``destination`` without its reader being able to change the stored one.

        :raises BlobMissing: if it is not here.
        """
        ...

    def delete(self, digest: str) -> None:
        """At once, set aside or not. Tolerates "gone"."""
        ...

    def blobs(self, *, after: str = "") -> Iterator[HeldBlob]:
        """Every blob with a digest greater than ``after``, in the order of digests.

        One that is set aside is marked so; one that has been stored again since is listed twice.
        """
        ...

    def set_aside(self, digest: str) -> None:
        """Mark it as needless. Whoever stores, opens or materialises it brings it back. Tolerates "gone"."""
        ...

    def bring_back(self, digest: str) -> None:
        """Undo ``set_aside``. Tolerates "gone"."""
        ...

    def discard(self, digest: str) -> None:
        """Delete what is set aside under that digest, and nothing else. Tolerates "gone"."""
        ...

    def clear_unfinished(self, *, before: datetime) -> int:
        """Delete what crashed writers left before that instant; say how many bytes that were."""
        ...
