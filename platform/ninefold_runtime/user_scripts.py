"""Script tasks: unpack the user's code, run it, and upload ``outputs/``.

The program sees its code as the current folder, the inputs at ``NINEFOLD_INPUTS`` and writes results to
``NINEFOLD_OUTPUTS``. The token that reports the result is not passed on to it. Its standard output is the
log of the job.

Code archives are untrusted. Nothing may end up outside the folder (a name with ``..``, an absolute name, a
link, a device), and nothing may fill the disk: files and bytes are counted while they are written, since the
sizes in an archive's headers are claims.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from ninefold_runtime.exit_codes import InvalidTaskInput, StopSignalHandler, TaskStopped
from ninefold_runtime.report import Reporter
from ninefold_runtime.specs import ScriptSpec
from ninefold_runtime.task_folders import TaskFolders

_WITHHELD = ("NINEFOLD_ATTEMPT_TOKEN", "NINEFOLD_REPORT_URL", "NINEFOLD_ENGINE_KEY")
_POLL_SECONDS = 0.2


def run_script(
    *, spec: ScriptSpec, folders: TaskFolders, reporter: Reporter, stop: StopSignalHandler
) -> int:
    """The exit code of the program; its outputs are handed over only if that is 0.

    A program killed by signal N counts as 128 + N, as in a shell.

    :raises InvalidTaskInput: if the archive is refused or there is no such program.
    :raises TaskStopped: on a stop request; the program received it, and has ended.
    """
    code = folders.work / "code"
    archive = folders.archive()
    code.mkdir(exist_ok=True)
    count = unpack_archive(archive, code) if archive is not None else 0
    folders.outputs.mkdir(exist_ok=True)
    reporter.message(f"unpacked {count} files; running {' '.join(spec.argv)}")
    environment = {name: value for name, value in os.environ.items() if name not in _WITHHELD}
    environment |= spec.environment
    environment["NINEFOLD_OUTPUTS"] = str(folders.outputs)
    argv = [sys.executable if spec.argv[0] == "python" else spec.argv[0], *spec.argv[1:]]
    with stop.deferred():
        try:
            process = subprocess.Popen(argv, cwd=code, env=environment)
        except OSError as error:
            raise InvalidTaskInput(f"{spec.argv[0]!r} cannot be run: {error.strerror}") from error
        status = _wait_for_process(process, stop=stop)
    if stop.requested:
        raise TaskStopped(f"stopped; the program ended with {status}")
    if status != 0:
        reporter.message(f"the program failed with exit code {status}")
        return status
    reporter.deliver(folders.outputs, kind="outputs", metrics={})
    return 0


def _wait_for_process(process: subprocess.Popen[bytes], *, stop: StopSignalHandler) -> int:
    signalled = False
    while True:
        try:
            status = process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if stop.requested and not signalled:
                process.terminate()
                signalled = True
        else:
            return status if status >= 0 else 128 - status


_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """How much an archive may unpack to."""

    files: int = 20_000
    size: int = 4 * 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class _ArchiveEntry:
    name: str
    content: BinaryIO
    executable: bool


def unpack_archive(archive: Path, destination: Path, *, bounds: ArchiveLimits | None = None) -> int:
    """Write the archive's files below ``destination``, and return how many there are.

    :raises InvalidTaskInput: if it is damaged, too large, or has an entry that is neither a plain file nor a
        folder inside it.
    """
    bounds = bounds or ArchiveLimits()
    destination.mkdir(parents=True, exist_ok=True)
    files, left = 0, bounds.size
    try:
        for entry in (
            _zip_entries(archive) if zipfile.is_zipfile(archive) else _tar_entries(archive)
        ):
            files += 1
            if files > bounds.files:
                raise InvalidTaskInput(f"the archive holds more than {bounds.files:,} files")
            path = destination / _require_safe_archive_path(entry.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            left -= _extract_entry(entry, path, at_most=left, bounds=bounds)
            path.chmod(0o755 if entry.executable else 0o644)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise InvalidTaskInput(f"{archive.name} is not a readable archive: {error}") from error
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise InvalidTaskInput(
            f"{archive.name} has one name as a file and as a folder: {error}"
        ) from error
    if files == 0:
        raise InvalidTaskInput(f"{archive.name} holds no files")
    return files


def _extract_entry(entry: _ArchiveEntry, path: Path, *, at_most: int, bounds: ArchiveLimits) -> int:
    written = 0
    with path.open("wb") as target:
        while chunk := entry.content.read(_CHUNK):
            written += len(chunk)
            if written > at_most:
                raise InvalidTaskInput(f"the archive unpacks to more than {bounds.size:,} bytes")
            target.write(chunk)
    return written


def _require_safe_archive_path(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or "\\" in name:
        raise InvalidTaskInput(f"the archive has an entry outside its folder: {name!r}")
    return path


def _tar_entries(archive: Path) -> Iterator[_ArchiveEntry]:
    with tarfile.open(archive, mode="r:*") as opened:
        for member in opened:
            if member.isdir():
                continue
            if not member.isreg():
                raise InvalidTaskInput(
                    f"the archive has a link or device: {member.name!r}; only files and folders are unpacked"
                )
            content = cast(BinaryIO, opened.extractfile(member))
            yield _ArchiveEntry(
                name=member.name, content=content, executable=bool(member.mode & 0o100)
            )


def _zip_entries(archive: Path) -> Iterator[_ArchiveEntry]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if info.is_dir():
                continue
            mode = info.external_attr >> 16
            if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise InvalidTaskInput(
                    f"the archive has a link or device: {info.filename!r}; only files and folders are unpacked"
                )
            if info.flag_bits & 0x1:
                raise InvalidTaskInput(f"the archive has an encrypted entry: {info.filename!r}")
            with opened.open(info) as content:
                yield _ArchiveEntry(
                    name=info.filename,
                    content=cast(BinaryIO, content),
                    executable=bool(mode & 0o100),
                )
