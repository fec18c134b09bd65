"""Reading and searching the log of an attempt: always a range of it, never all of it at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apps.fleet import selectors as fleet
from apps.jobs.models import Attempt
from apps.jobs.selectors.secret_variables import masked_log
from apps.models import selectors as registry
from controlplane.persistence.encryption import Undecryptable
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.clusters import Cluster, ClusterError, LogChunk
from controlplane.ports.engines import ROLES, Task

#: Bytes that a search reads at once.
_SCAN = 1 << 20
#: Where a search gives up: five seconds' reading, and more than anybody looks through.
MOST_SCANNED = 512 << 20
#: Occurrences that a search counts.
MOST_MATCHES = 10_000


def attempt_log(attempt: Attempt, *, offset: int, limit: int) -> LogChunk:
    """Up to ``limit`` bytes from ``offset``; negative counts from the end."""
    if attempt.log_digest:
        return _archived(attempt.log_digest, offset=offset, limit=limit)
    if attempt.cluster is None:
        ended = attempt.ended_at is not None
        return LogChunk(content=b"", next_offset=0, complete=ended)
    adapter = fleet.cluster_adapter(attempt.cluster)
    try:
        return cluster_log(adapter, attempt, offset=offset, limit=limit)
    except (ClusterError, Undecryptable):
        # A log in which nothing can be masked is not shown.
        return LogChunk(content=b"", next_offset=max(0, offset), complete=False)


def cluster_log(adapter: Cluster, attempt: Attempt, *, offset: int, limit: int) -> LogChunk:
    """A piece of the log as its cluster has it, without the values of secret variables.

    :raises ClusterError: if the cluster does not answer.
    :raises Undecryptable: if a value that has to be masked cannot be read.
    """
    role = ROLES[Task(attempt.job.kind)]

    def read(start: int, count: int) -> LogChunk:
        return adapter.log(attempt.launch_name, role=role, index=0, offset=start, limit=count)

    return masked_log(read, job=attempt.job, offset=offset, limit=limit)


def _archived(digest: str, *, offset: int, limit: int) -> LogChunk:
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
class Match:
    """One occurrence of a text in a log."""

    #: Bytes before it.
    offset: int
    #: Of the log, from 1.
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Where a text occurs."""

    matches: tuple[Match, ...]
    #: False where there may be more, beyond what one search counts or reads.
    whole: bool


def log_search(attempt: Attempt, text: str) -> Search:
    """Every occurrence of the text as it stands, whatever the case of its Latin letters."""
    wanted = text.encode().lower()
    if not wanted:
        return Search(matches=(), whole=True)
    matches: list[Match] = []
    line = 1
    for start, content, fresh in _pieces(attempt, overlap=len(wanted) - 1):
        place, counted = content.find(wanted), 0
        while place >= 0:
            line += content.count(b"\n", counted, place)
            counted = place
            if len(matches) == MOST_MATCHES:
                return Search(matches=tuple(matches), whole=False)
            matches.append(Match(offset=start + place, line=line))
            place = content.find(wanted, place + len(wanted))
        # The overlap comes again with the next piece, and its lines must be counted once.
        line += content.count(b"\n", counted, fresh)
        if start + fresh >= MOST_SCANNED:
            return Search(matches=tuple(matches), whole=False)
    return Search(matches=tuple(matches), whole=True)


def _pieces(attempt: Attempt, *, overlap: int) -> Iterator[tuple[int, bytes, int]]:
    """Offset, bytes in lower case, and how many of them will not come again."""
    offset, held = 0, b""
    while True:
        chunk = attempt_log(attempt, offset=offset, limit=_SCAN)
        content = held + chunk.content.lower()
        start = offset - len(held)
        last = chunk.complete or not chunk.content
        held = b"" if last or not overlap else content[-overlap:]
        yield start, content, len(content) - len(held)
        if last:
            return
        offset = chunk.next_offset
