"""Files of supervisors: locks that end with their holder, private files replaced in one step, ends of logs."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def try_lock(path: Path) -> int | None:
    """A descriptor that holds the file's lock until it is closed, or None if another holds it.

    The kernel releases it when the holder dies, however it dies. A lock file deleted while a process
    waits for it would be two locks: a descriptor whose file is no longer at ``path`` does not count.
    """
    handle = _open_lock(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), path.stat()):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


@contextmanager
def hold_file_lock(path: Path) -> Iterator[None]:
    """Hold the file's lock, waiting for it as long as it takes."""
    handle = _open_lock(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def write_private(path: Path, text: str) -> None:
    """Replace the file in one step by one that only this account may read (0600).

    :raises OSError: if there is no room; the old text stays.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        temporary.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def last_lines(path: Path, *, lines: int) -> list[str]:
    """The last lines of a text file, oldest first; empty if there is no such file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - lines * 400))
            return file.read().decode(errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []
