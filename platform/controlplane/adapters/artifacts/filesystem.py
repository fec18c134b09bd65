"""Content-addressed artifact store in a directory.

::

    <root>/            0700   accessible to the product only
      sha256/ab/cdef…  0444   a blob: never written again once it has its name
      aside/ab/cdef…   0444   a blob that seems unused, until it is discarded or brought back
      incoming/        0700   files being written; a crash leaves partial files here and nowhere else

A blob gets its name by a hard link from ``incoming``, so it is whole or absent. ``materialise`` links it
to where a job can read it: the inode belongs to the product and nobody else may write it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from controlplane.adapters.artifacts.blobs import (
    blob_missing,
    check_digest,
    parse_digest,
    translate_disk_errors,
)
from controlplane.ports.artifacts import Blob, StoredBlob

#: Then it is copied. The last: it has been set aside since it was opened.
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOENT)


class FilesystemArtifacts:
    """Implements ``controlplane.ports.artifacts.ArtifactStore``."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).absolute()

    def put(self, chunks: Iterable[bytes], *, expected: str | None = None) -> Blob:
        """Store the bytes and return their digest and size; storing twice keeps one copy.

        :raises ArtifactError: if ``expected`` is given and the content differs.
        :raises StorageFull: if the disk is full; nothing of the blob stays behind.
        """
        if expected is not None:
            parse_digest(expected)
        with translate_disk_errors(self.root):
            incoming = self._ensure_folder("incoming") / secrets.token_hex(16)
            try:
                digest, size = _write_and_hash(incoming, chunks)
                check_digest(expected=expected, digest=digest, size=size)
                self._move_into_place(incoming, digest)
            finally:
                with suppress(FileNotFoundError):
                    incoming.unlink()
        return Blob(digest=digest, size=size)

    def size(self, digest: str) -> int:
        with _translate_missing_blob_error(digest):
            try:
                return self._blob_path(digest).stat().st_size
            except FileNotFoundError:
                return self._quarantine_path(digest).stat().st_size

    def open(self, digest: str) -> BinaryIO:
        with _translate_missing_blob_error(digest):
            try:
                return self._blob_path(digest).open("rb")
            except FileNotFoundError:
                self.bring_back(digest)
                return self._blob_path(digest).open("rb")

    def materialise(self, digest: str, destination: Path) -> None:
        """Link the blob to ``destination``, or copy it where a link is not possible; mode 0444 either way.

        An existing file at ``destination`` is replaced.

        :raises BlobMissing: if it is not here.
        :raises StorageFull: if a copy does not fit; no part of it stays behind.
        """
        source = self._blob_path(digest)
        temporary = destination.with_name(f".{secrets.token_hex(8)}")
        with translate_disk_errors(destination.parent), self.open(digest) as blob:
            try:
                _link_or_copy_blob(source, blob, temporary)
                temporary.replace(destination)
            finally:
                # Renaming one link of an inode onto another leaves both in place.
                with suppress(FileNotFoundError):
                    temporary.unlink()

    def delete(self, digest: str) -> None:
        with suppress(FileNotFoundError):
            self._blob_path(digest).unlink()
        self.discard(digest)

    def blobs(self, *, after: str = "") -> Iterator[StoredBlob]:
        found = after.removeprefix("sha256:")
        for prefix in sorted(
            {*_file_names(self.root / "sha256"), *_file_names(self.root / "aside")}
        ):
            if prefix < found[:2]:
                continue
            listed = [
                blob
                for area in ("sha256", "aside")
                for blob in self._list_area(area, prefix)
                if blob.digest > after
            ]
            yield from sorted(listed, key=lambda blob: (blob.digest, blob.set_aside))

    def set_aside(self, digest: str) -> None:
        path, aside = self._blob_path(digest), self._quarantine_path(digest)
        self._ensure_folder("aside", aside.parent.name)
        with suppress(FileNotFoundError):
            # First set the time, then move: a crash in between makes it newer, never older.
            os.utime(path)
            path.replace(aside)

    def bring_back(self, digest: str) -> None:
        path, aside = self._blob_path(digest), self._quarantine_path(digest)
        self._ensure_folder("sha256", path.parent.name)
        with suppress(FileNotFoundError):
            # A link first, so that there is no moment without a name.
            with suppress(FileExistsError):
                os.link(aside, path)
            aside.unlink()

    def discard(self, digest: str) -> None:
        with suppress(FileNotFoundError):
            self._quarantine_path(digest).unlink()

    def delete_unfinished_writes(self, *, before: datetime) -> int:
        cleared = 0
        for name in _file_names(self.root / "incoming"):
            path = self.root / "incoming" / name
            with suppress(FileNotFoundError):
                seen = path.stat()
                if seen.st_mtime < before.timestamp():
                    path.unlink()
                    cleared += seen.st_size
        return cleared

    def _list_area(self, area: str, prefix: str) -> Iterator[StoredBlob]:
        folder = self.root / area / prefix
        for name in _file_names(folder):
            with suppress(FileNotFoundError):
                seen = (folder / name).stat()
                yield StoredBlob(
                    digest=f"sha256:{prefix}{name}",
                    size=seen.st_size,
                    since=datetime.fromtimestamp(seen.st_mtime, tz=UTC),
                    set_aside=area == "aside",
                )

    def _blob_path(self, digest: str) -> Path:
        name = parse_digest(digest)
        return self.root / "sha256" / name[:2] / name[2:]

    def _quarantine_path(self, digest: str) -> Path:
        name = parse_digest(digest)
        return self.root / "aside" / name[:2] / name[2:]

    def _ensure_folder(self, *parts: str) -> Path:
        folder = self.root.joinpath(*parts)
        if not folder.is_dir():
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.root.chmod(0o700)
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def _move_into_place(self, incoming: Path, digest: str) -> None:
        path = self._blob_path(digest)
        folder = self._ensure_folder("sha256", path.parent.name)
        incoming.chmod(0o444)
        # A link, not a rename: who stores the same bytes at the same time keeps the first inode.
        while True:
            try:
                os.link(incoming, path)
                break
            except FileExistsError:
                # It may be set aside between the two: then the name is free again.
                with suppress(FileNotFoundError):
                    os.utime(path)
                    break
        _sync_folder(folder)


def _file_names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []


def _write_and_hash(path: Path, chunks: Iterable[bytes]) -> tuple[str, int]:
    hashed, size = hashlib.sha256(), 0
    with path.open("xb") as stream:
        for chunk in chunks:
            hashed.update(chunk)
            size += len(chunk)
            stream.write(chunk)
        stream.flush()
        os.fsync(stream.fileno())
    return f"sha256:{hashed.hexdigest()}", size


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _link_or_copy_blob(source: Path, blob: BinaryIO, temporary: Path) -> None:
    try:
        os.link(source, temporary)
    except OSError as failure:
        if failure.errno not in _NO_LINK:
            raise
        with temporary.open("xb") as copy:
            shutil.copyfileobj(blob, copy, 1 << 20)
        temporary.chmod(0o444)


@contextmanager
def _translate_missing_blob_error(digest: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as failure:
        raise blob_missing(digest) from failure
