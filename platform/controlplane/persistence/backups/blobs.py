"""Copy artifact blobs out of a store and into one."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from controlplane.persistence.backups.manifest import (
    BLOB_LIST,
    BackupManifest,
    BackupRefused,
    FileChecksum,
    file_checksum,
    stream_digest_and_size,
    verify_checksum,
)
from controlplane.ports.artifacts import ArtifactStore, BlobMissing

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobBackupResult:
    checksum: FileChecksum
    count: int
    size: int
    #: Of these, taken from an earlier backup instead of being copied.
    linked: int
    missing: tuple[str, ...]


def back_up_blobs(
    digests: Iterable[str],
    *,
    store: ArtifactStore,
    folder: Path,
    included: bool,
    earlier: Path | None,
) -> BlobBackupResult:
    """List each blob once; copy it, or link it from ``earlier`` where that has it unchanged."""
    count = size = linked = 0
    missing: list[str] = []
    path = folder / BLOB_LIST
    with path.open("xb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as listed:
        for digest in sorted(set(digests)):
            try:
                blob_size = store.size(digest)
                if included:
                    linked += _copy_or_link_blob(
                        digest, store=store, folder=folder, earlier=earlier
                    )
            except BlobMissing:
                missing.append(digest)
                continue
            listed.write(f"{digest} {blob_size}\n".encode())
            count, size = count + 1, size + blob_size
    return BlobBackupResult(
        checksum=file_checksum(path, folder=folder),
        count=count,
        size=size,
        linked=linked,
        missing=tuple(missing),
    )


def _copy_or_link_blob(
    digest: str, *, store: ArtifactStore, folder: Path, earlier: Path | None
) -> bool:
    """Whether it was linked."""
    target = folder / blob_path(digest)
    target.parent.mkdir(parents=True, exist_ok=True)
    if earlier is not None and _matches_blob_digest(earlier / blob_path(digest), digest):
        with suppress(OSError):
            os.link(earlier / blob_path(digest), target)
            return True
    hashed = hashlib.sha256()
    with store.open(digest) as source, target.open("xb") as copy:
        while chunk := source.read(_CHUNK):
            hashed.update(chunk)
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    if f"sha256:{hashed.hexdigest()}" != digest:
        raise BackupRefused(
            f"the artifact store is damaged: the bytes of {digest} are others; nothing was backed up"
        )
    return False


def list_backup_blobs(manifest: BackupManifest, *, folder: Path) -> Iterator[tuple[str, int]]:
    """Digest and size of each."""
    with gzip.open(folder / manifest.blob_list.path, "rt", encoding="ascii") as listed:
        for line in listed:
            digest, _, size = line.strip().partition(" ")
            yield digest, int(size)


def verify_backup_blobs(manifest: BackupManifest, *, folder: Path, store: ArtifactStore) -> None:
    """Verify that every blob is in the backup, or in the store if the backup has none.

    :raises BackupRefused: if one is missing, cut off or changed.
    """
    verify_checksum(manifest.blob_list, folder=folder)
    for digest, size in list_backup_blobs(manifest, folder=folder):
        if manifest.blobs_included:
            hexadecimal = digest.removeprefix("sha256:")
            checksum = FileChecksum(path=blob_path(digest), size=size, digest=hexadecimal)
            verify_checksum(checksum, folder=folder)
            continue
        try:
            store.size(digest)
        except BlobMissing:
            raise BackupRefused(
                f"the backup was made without artifacts, and {digest} is not in this store either: "
                "put back the folder of artifacts first"
            ) from None


def restore_blobs(manifest: BackupManifest, *, folder: Path, store: ArtifactStore) -> int:
    """Copy the blobs into the store; return their number. Unreferenced ones become garbage."""
    if not manifest.blobs_included:
        return 0
    count = 0
    for digest, _ in list_backup_blobs(manifest, folder=folder):
        with (folder / blob_path(digest)).open("rb") as stream:
            store.put(_read_pieces(stream), expected=digest)
        count += 1
    return count


def blob_path(digest: str) -> str:
    """Where it is in a backup."""
    name = digest.removeprefix("sha256:")
    return f"blobs/{name[:2]}/{name[2:]}"


def _matches_blob_digest(path: Path, digest: str) -> bool:
    try:
        with path.open("rb") as stream:
            return digest == f"sha256:{stream_digest_and_size(stream)[0]}"
    except OSError:
        return False


def _read_pieces(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk
