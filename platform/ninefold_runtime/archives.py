"""Unpacking an archive from somebody else.

Nothing may end up outside the folder, by whatever trick: a name with ``..``, an absolute name, a link, a
device; and nothing may fill the disk: files and bytes are counted while they are written, since the sizes
in an archive's headers are claims.
"""

from __future__ import annotations

import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from ninefold_runtime.exits import BadInput

_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much an archive may unpack to."""

    files: int = 20_000
    size: int = 4 * 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    name: str
    content: BinaryIO
    executable: bool


def unpack(archive: Path, destination: Path, *, bounds: Bounds | None = None) -> int:
    """Write the archive's files below ``destination``, and return how many there are.

    :raises BadInput: if it is damaged, too large, or has an entry that is neither a plain file nor a
        folder inside it.
    """
    bounds = bounds or Bounds()
    destination.mkdir(parents=True, exist_ok=True)
    files, left = 0, bounds.size
    try:
        for entry in _zip(archive) if zipfile.is_zipfile(archive) else _tar(archive):
            files += 1
            if files > bounds.files:
                raise BadInput(f"the archive holds more than {bounds.files:,} files")
            path = destination / _safe(entry.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            left -= _copy(entry, path, at_most=left, bounds=bounds)
            path.chmod(0o755 if entry.executable else 0o644)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise BadInput(f"{archive.name} is not a readable archive: {error}") from error
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise BadInput(f"{archive.name} has one name as a file and as a folder: {error}") from error
    if files == 0:
        raise BadInput(f"{archive.name} holds no files")
    return files


def _copy(entry: _Entry, path: Path, *, at_most: int, bounds: Bounds) -> int:
    written = 0
    with path.open("wb") as target:
        while chunk := entry.content.read(_CHUNK):
            written += len(chunk)
            if written > at_most:
                raise BadInput(f"the archive unpacks to more than {bounds.size:,} bytes")
            target.write(chunk)
    return written


def _safe(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or "\\" in name:
        raise BadInput(f"the archive has an entry outside its folder: {name!r}")
    return path


def _tar(archive: Path) -> Iterator[_Entry]:
    with tarfile.open(archive, mode="r:*") as opened:
        for member in opened:
            if member.isdir():
                continue
            if not member.isreg():
                raise BadInput(
                    f"the archive has a link or device: {member.name!r}; only files and folders are unpacked"
                )
            content = cast(BinaryIO, opened.extractfile(member))
            yield _Entry(name=member.name, content=content, executable=bool(member.mode & 0o100))


def _zip(archive: Path) -> Iterator[_Entry]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if info.is_dir():
                continue
            mode = info.external_attr >> 16
            if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise BadInput(
                    f"the archive has a link or device: {info.filename!r}; only files and folders are unpacked"
                )
            if info.flag_bits & 0x1:
                raise BadInput(f"the archive has an encrypted entry: {info.filename!r}")
            with opened.open(info) as content:
                yield _Entry(
                    name=info.filename,
                    content=cast(BinaryIO, content),
                    executable=bool(mode & 0o100),
                )
