"""Logs of pods by offset, over an API that knows no offsets.

The API gives a container's output from its beginning, up to a number of bytes. Reading from an offset therefore
costs what lies before it. The kubelet keeps a log small (10 MiB unless its configuration says otherwise) and
begins anew after that: an offset beyond its end is read as "from the beginning".

A kubelet deletes a log as soon as a pod that was deleted has ended. So the log is copied into the record when a
Launch is asked to stop; what the pod printed after that is known by its last lines, which its status keeps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from controlplane.adapters.clusters.kubernetes.api import Api, ApiRefused, NotAllowed
from controlplane.adapters.clusters.kubernetes.plans import CONTAINER
from controlplane.ports.clusters import ClusterError, LogChunk

#: How much of a log its Launch's record keeps: an object of the API holds 1 MiB.
KEPT = 64 * 1024
#: Seconds that a node has to answer whoever waits to stop a pod of it.
_SAVED_WITHIN = 5.0
#: So a kubelet answers, with 200, where the container is no more.
_GONE = b"unable to retrieve container logs for "
NOTHING = LogChunk(content=b"", next_offset=0, complete=True)


def read_log(
    api: Api, pod_path: str, *, offset: int, limit: int, ended: bool, rest: bytes
) -> LogChunk:
    """Up to ``limit`` bytes from ``offset``; a negative one counts from the end.

    ``ended``: the container writes no more. ``rest``: what stands in for a log that is gone.
    """
    query = {} if offset < 0 else {"limitBytes": str(offset + max(limit, len(_GONE)))}
    pieces = _pieces(api, pod_path, query=query)
    if ended:
        pieces = _or_rest(pieces, rest)
    if offset < 0:
        return _tail(pieces, wanted=min(-offset, limit), back=-offset, ended=ended)
    return _from(pieces, offset=offset, limit=limit, ended=ended)


def whole_log(api: Api, pod_path: str) -> bytes:
    """Its newest bytes, as many as are kept of a log; nothing if it cannot be had."""
    kept = bytearray()
    # A node that is silent keeps nobody from stopping what runs there.
    with suppress(ClusterError):
        pieces = _pieces(api, pod_path, query={}, within=_SAVED_WITHIN)
        for piece in _or_rest(pieces, b""):
            kept += piece
            del kept[:-KEPT]
    return bytes(kept)


def _pieces(
    api: Api, pod_path: str, *, query: Mapping[str, str], within: float | None = None
) -> Iterator[bytes]:
    """None where the container was not started yet, or is no more.

    :param within: seconds that each piece may take.
    """
    asked = {"container": CONTAINER, **query}
    try:
        yield from api.stream(f"{pod_path}/log", query=asked, read_within=within)
    except ApiRefused as refusal:
        if isinstance(refusal, NotAllowed):
            raise


def _or_rest(pieces: Iterator[bytes], rest: bytes) -> Iterator[bytes]:
    """The log, or what stands in for it where there is none any more."""
    beginning = b""
    for piece in pieces:
        beginning += piece
        if len(beginning) >= len(_GONE):
            break
    if not beginning or beginning.startswith(_GONE):
        beginning, pieces = rest, iter(())
    yield beginning
    yield from pieces


def continued_by(saved: bytes, last_words: bytes) -> bytes:
    """What was saved, and of its last words what came after that."""
    if last_words in saved:
        return saved
    for overlap in range(min(len(saved), len(last_words)), 0, -1):
        if saved.endswith(last_words[:overlap]):
            return saved + last_words[overlap:]
    return saved + last_words


def _from(pieces: Iterable[bytes], *, offset: int, limit: int, ended: bool) -> LogChunk:
    seen, content = 0, bytearray()
    first = bytearray()
    for piece in pieces:
        if seen < offset and len(first) < limit:
            first += piece[: limit - len(first)]
        start = max(0, offset - seen)
        content += piece[start:]
        seen += len(piece)
    if seen < offset:
        # It was begun anew since.
        return LogChunk(content=bytes(first), next_offset=len(first), complete=False)
    found = bytes(content[:limit])
    return LogChunk(
        content=found, next_offset=offset + len(found), complete=ended and len(found) < limit
    )


def _tail(pieces: Iterable[bytes], *, wanted: int, back: int, ended: bool) -> LogChunk:
    kept: deque[bytes] = deque()
    held = seen = 0
    for piece in pieces:
        kept.append(piece)
        held += len(piece)
        seen += len(piece)
        while held - len(kept[0]) >= back:
            held -= len(kept.popleft())
    content = b"".join(kept)[-back:][:wanted]
    start = max(0, seen - back)
    return LogChunk(
        content=content,
        next_offset=start + len(content),
        complete=ended and start + len(content) >= seen,
    )
