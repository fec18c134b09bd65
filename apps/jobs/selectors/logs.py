"""Read and search the log of an attempt in chunks, never all of it at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apps.fleet import selectors as fleet
from apps.jobs.models import Attempt
from apps.jobs.selectors.secret_variables import masked_log
from apps.models import selectors as registry
from controlplane.persistence.encryption import DecryptionFailed
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.clusters import ClusterAdapter, ClusterError, LogChunk
from controlplane.ports.engines import ROLES, EngineTask

#: Size of the chunks that a search reads.
_SCAN_BYTES = 1 << 20
#: A search stops after so many bytes, about five seconds of reading.
MAX_SCANNED_BYTES = 512 << 20
#: A search stops after so many occurrences.
MAX_MATCHES = 10_000


def attempt_log(attempt: Attempt, *, offset: int, limit: int) -> LogChunk:
    """Up to ``limit`` bytes from ``offset``; negative counts from the end."""
    if attempt.log_digest:
        return _read_archived_log(attempt.log_digest, offset=offset, limit=limit)
    if attempt.cluster is None:
        ended = attempt.ended_at is not None
        return LogChunk(content=b"", next_offset=0, complete=ended)
    adapter = fleet.cluster_adapter(attempt.cluster)
    try:
        return attempt_log_from_cluster(adapter, attempt, offset=offset, limit=limit)
    except (ClusterError, DecryptionFailed):
        # A log that cannot be masked is not shown.
        return LogChunk(content=b"", next_offset=max(0, offset), complete=False)


def attempt_log_from_cluster(
    adapter: ClusterAdapter, attempt: Attempt, *, offset: int, limit: int
) -> LogChunk:
    """A chunk of the log from the cluster, with values of secret variables masked.

    :raises ClusterError: if the cluster does not answer.
    :raises Undecryptable: if a value that has to be masked cannot be read.
    """
    role = ROLES[EngineTask(attempt.job.kind)]

    def read(start: int, count: int) -> LogChunk:
        return adapter.log(attempt.launch_name, role=role, index=0, offset=start, limit=count)

    return masked_log(read, job=attempt.job, offset=offset, limit=limit)


def _read_archived_log(digest: str, *, offset: int, limit: int) -> LogChunk:
    store = registry.artifact_store()
    try:
        size = store.size(digest)
        start = max(0, size + offset) if offset < 0 else min(offset, size)
        with store.open(digest) as log:
            log.seek(start)
            content = log.read(limit)
    except BlobMissing:
        return LogChunk(content=b"", next_offset=0, complete=True)
    end = start + len(content)
    return LogChunk(content=content, next_offset=end, complete=end >= size)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMatch:
    """One occurrence of the text."""

    #: Bytes before it.
    offset: int
    #: Line number, from 1.
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSearch:
    """The occurrences of a text."""

    matches: tuple[LogMatch, ...]
    #: False if the search stopped at one of its limits, so that there may be more.
    complete: bool


def search_attempt_log(attempt: Attempt, text: str) -> LogSearch:
    """Occurrences of the text; ASCII letters match in either case."""
    needle = text.encode().lower()
    if not needle:
        return LogSearch(matches=(), complete=True)
    matches: list[LogMatch] = []
    line = 1
    for start, content, fresh in _overlapping_chunks(attempt, overlap=len(needle) - 1):
        position, counted = content.find(needle), 0
        while position >= 0:
            line += content.count(b"\n", counted, position)
            counted = position
            if len(matches) == MAX_MATCHES:
                return LogSearch(matches=tuple(matches), complete=False)
            matches.append(LogMatch(offset=start + position, line=line))
            position = content.find(needle, position + len(needle))
        # The overlap is repeated in the next chunk, and its lines must be counted once.
        line += content.count(b"\n", counted, fresh)
        if start + fresh >= MAX_SCANNED_BYTES:
            return LogSearch(matches=tuple(matches), complete=False)
    return LogSearch(matches=tuple(matches), complete=True)


def _overlapping_chunks(attempt: Attempt, *, overlap: int) -> Iterator[tuple[int, bytes, int]]:
    """Offset, bytes in lower case, and how many of them are not repeated in the next chunk."""
    offset, overlap_bytes = 0, b""
    while True:
        chunk = attempt_log(attempt, offset=offset, limit=_SCAN_BYTES)
        content = overlap_bytes + chunk.content.lower()
        start = offset - len(overlap_bytes)
        last = chunk.complete or not chunk.content
        overlap_bytes = b"" if last or not overlap else content[-overlap:]
        yield start, content, len(content) - len(overlap_bytes)
        if last:
            return
        offset = chunk.next_offset
