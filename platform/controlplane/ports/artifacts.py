"""The artifact store port: immutable blobs by content digest.

A digest is ``sha256:<64 hex>``. A *tree* (a model version, a dataset version, a checkpoint) is a mapping
of relative path → digest kept in the database; the store knows blobs only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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


@runtime_checkable
class ArtifactStore(Protocol):
    def put(self, chunks: Iterable[bytes], *, expected: str | None = None) -> Blob:
        """Store the bytes and say what they are; storing twice keeps one.

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
        """Tolerates "gone"."""
        ...
