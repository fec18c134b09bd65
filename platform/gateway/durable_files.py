"""Atomic writes of private files, and the lock on the gateway's folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FolderInUse(Exception):
    """Another gateway process uses the folder."""


def write_durably(path: Path, content: bytes) -> None:
    """Replace the file with mode 0600; the content is on the disk when this returns.

    :raises OSError: if the disk refuses; the file is then what it was before.
    """
    partial = path.with_name(f"{path.name}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class FolderLock:
    """A lock for the lifetime of the process; the system releases it however the process ends."""

    def __init__(self, folder: Path) -> None:
        """:raises FolderInUse: if another process has it."""
        path = folder / "lock"
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise FolderInUse(
                f"another gateway works in {folder}; give this one a NINEFOLD_GATEWAY_ID of its own"
            ) from None

    def release(self) -> None:
        os.close(self._descriptor)
