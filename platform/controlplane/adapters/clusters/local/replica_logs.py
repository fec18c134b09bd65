"""The log of a replica: append only, bounded, free of the Launch's secrets.

Offsets never change their meaning, so nothing is rotated. Up to ``limit`` bytes are kept from the
beginning; what comes later is counted, and its last lines follow a marker when the process has ended,
because the end is where the reason of a failure stands.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from controlplane.domain.common.resources import format_bytes
from controlplane.ports.clusters import LogChunk

#: Bytes of the newest output that are always available, even on a full disk.
TAIL = 16 * 1024
#: Shorter values are too likely to be ordinary text.
_SHORTEST_SECRET = 8
_REDACTED = b"[secret]"


class SecretRedactor:
    """Replaces secrets in a stream of bytes, also where a secret is cut by the chunks' border."""

    def __init__(self, secrets: Iterable[str]) -> None:
        encoded = {secret.encode() for secret in secrets if len(secret) >= _SHORTEST_SECRET}
        # Longest first, so that a secret within a secret leaves nothing of the longer one behind.
        self._secrets = sorted(encoded, key=len, reverse=True)
        self._pending = b""

    def feed(self, content: bytes) -> bytes:
        """What is safe to write now; a beginning of a secret is held back until the next call."""
        content = self._redact_secrets(self._pending + content)
        overlap = max(
            (_secret_overlap_length(content, secret) for secret in self._secrets), default=0
        )
        self._pending = content[len(content) - overlap :]
        return content[: len(content) - overlap]

    def flush(self) -> bytes:
        pending, self._pending = self._pending, b""
        return pending

    def _redact_secrets(self, content: bytes) -> bytes:
        for secret in self._secrets:
            content = content.replace(secret, _REDACTED)
        return content


def _secret_overlap_length(content: bytes, secret: bytes) -> int:
    """Length of the longest proper beginning of ``secret`` that ``content`` ends with."""
    for length in range(min(len(secret) - 1, len(content)), 0, -1):
        if content.endswith(secret[:length]):
            return length
    return 0


class BoundedLog:
    """The writer's side. No call raises for lack of space: a full disk must not end the supervisor."""

    def __init__(self, path: Path, *, limit: int, secrets: Iterable[str] = ()) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._handle = os.open(path, flags, 0o600)
        self._remaining = max(0, limit - os.fstat(self._handle).st_size)
        self._limit = limit
        self._redaction = SecretRedactor(secrets)
        self._left_out = 0
        self._lost = 0
        self.tail = b""

    def write_message(self, message: str) -> None:
        """A line of the supervisor's own."""
        self.write(f"[ninefold] {message}\n".encode())

    def write(self, content: bytes) -> None:
        self._append_bounded(self._redaction.feed(content))

    def close(self) -> None:
        """Write what was held back and, where output is missing, its last lines."""
        self._append_bounded(self._redaction.flush())
        missing = self._left_out + self._lost
        if missing:
            end = self.tail[-missing:]
            marker = f"\n[ninefold] {missing - len(end)} bytes are left out here\n".encode()
            self._write_once(marker + end)
        os.close(self._handle)

    def last_line(self) -> str:
        """The newest line that is not blank, for a message; at most 300 characters."""
        lines = [line.strip() for line in self.tail.decode(errors="replace").splitlines()]
        job_lines = [line for line in lines if line and not line.startswith("[ninefold] ")]
        return job_lines[-1][:300] if job_lines else ""

    def _append_bounded(self, content: bytes) -> None:
        self.tail = (self.tail + content)[-TAIL:]
        stored = content[: self._remaining]
        self._left_out += len(content) - len(stored)
        if stored:
            self._remaining -= len(stored)
            self._write_all(stored)
            if not self._remaining:
                limit = format_bytes(self._limit)
                self._write_all(f"\n[ninefold] log truncated: its limit is {limit}\n".encode())

    def _write_all(self, content: bytes) -> None:
        if self._lost:
            marker = f"\n[ninefold] {self._lost} bytes lost: disk full\n".encode()
            if self._write_once(marker) < len(marker):
                self._lost += len(content)
                return
        self._lost = len(content) - self._write_once(content)

    def _write_once(self, content: bytes) -> int:
        done = 0
        while done < len(content):
            try:
                done += os.write(self._handle, content[done:])
            except OSError as failure:
                if failure.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                break
        return done


def read_chunk(path: Path, *, offset: int, limit: int, ended: bool) -> LogChunk:
    """Up to ``limit`` bytes from ``offset``, or from ``-offset`` bytes before the end.

    ``ended`` must have been read before this call: the log is then complete.
    """
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            start = max(0, size + offset) if offset < 0 else offset
            stream.seek(start)
            content = stream.read(max(0, limit))
    except FileNotFoundError:
        return LogChunk(content=b"", next_offset=max(0, offset), complete=ended)
    following = start + len(content)
    return LogChunk(content=content, next_offset=following, complete=ended and following >= size)
