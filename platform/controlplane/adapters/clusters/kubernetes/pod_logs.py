"""Logs of pods by offset, over an API that has no offsets.

The API returns a container's output from its beginning, up to a number of bytes. Reading from an offset
therefore costs what is before it. The kubelet keeps a log small (10 MiB unless configured otherwise) and begins
anew after that: an offset beyond its end is read as "from the beginning".

A kubelet deletes a log as soon as a deleted pod has ended. So the log is copied into the record when a Launch is
to be stopped; later output is known by its last lines, which the pod's status contains.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from controlplane.adapters.clusters.kubernetes.api import ApiAccessDenied, ApiRefused, KubernetesApi
from controlplane.adapters.clusters.kubernetes.launch_plans import CONTAINER, DOWNLOADER
from controlplane.ports.clusters import ClusterError, LogChunk

#: How much of a log its Launch's record keeps: an object of the API holds 1 MiB.
SAVED_LOG_BYTES = 64 * 1024
#: Timeout in seconds for reading a log before a pod is stopped.
_SAVED_WITHIN = 5.0
#: The response of a kubelet, with status 200, if the container no longer exists.
_GONE = b"unable to retrieve container logs for "
EMPTY_LOG = LogChunk(content=b"", next_offset=0, complete=True)


def read_log(
    api: KubernetesApi, pod_path: str, *, offset: int, limit: int, ended: bool, saved: bytes
) -> LogChunk:
    """Up to ``limit`` bytes from ``offset``; a negative one counts from the end.

    ``ended``: the container writes no more. ``saved``: the replacement for a deleted log.
    """
    query = {} if offset < 0 else {"limitBytes": str(offset + max(limit, len(_GONE)))}
    chunks = _log_chunks(api, pod_path, query=query)
    if ended:
        chunks = _log_or_saved_log(chunks, saved)
    if offset < 0:
        return _read_tail(chunks, wanted=min(-offset, limit), back=-offset, ended=ended)
    return _read_from_offset(chunks, offset=offset, limit=limit, ended=ended)


def log_tail(api: KubernetesApi, pod_path: str) -> bytes:
    """Its newest bytes, up to the saved size of a log; empty if it cannot be read."""
    buffer = bytearray()
    # An unreachable node must not prevent stopping its pods.
    with suppress(ClusterError):
        chunks = _log_chunks(api, pod_path, query={}, within=_SAVED_WITHIN)
        for chunk in _log_or_saved_log(chunks, b""):
            buffer += chunk
            del buffer[:-SAVED_LOG_BYTES]
    return bytes(buffer)


def last_download_line(api: KubernetesApi, pod_path: str) -> str:
    """The newest line of the container that downloads inputs; empty if it cannot be read."""
    query = {"container": DOWNLOADER, "tailLines": "1"}
    # Progress is not worth an error.
    with suppress(ClusterError):
        chunks = api.stream(f"{pod_path}/log", query=query, read_within=_SAVED_WITHIN)
        return b"".join(chunks).decode(errors="replace").strip()
    return ""


def _log_chunks(
    api: KubernetesApi, pod_path: str, *, query: Mapping[str, str], within: float | None = None
) -> Iterator[bytes]:
    """None if the container was not started yet, or no longer exists.

    :param within: timeout of each request in seconds.
    """
    requested = {"container": CONTAINER, **query}
    try:
        yield from api.stream(f"{pod_path}/log", query=requested, read_within=within)
    except ApiRefused as refusal:
        if isinstance(refusal, ApiAccessDenied):
            raise


def _log_or_saved_log(chunks: Iterator[bytes], saved: bytes) -> Iterator[bytes]:
    """The log, or its saved copy if it no longer exists."""
    beginning = b""
    for chunk in chunks:
        beginning += chunk
        if len(beginning) >= len(_GONE):
            break
    if not beginning or beginning.startswith(_GONE):
        beginning, chunks = saved, iter(())
    yield beginning
    yield from chunks


def append_termination_message(saved: bytes, message: bytes) -> bytes:
    """What was saved, and of its last words what came after that."""
    if message in saved:
        return saved
    for overlap in range(min(len(saved), len(message)), 0, -1):
        if saved.endswith(message[:overlap]):
            return saved + message[overlap:]
    return saved + message


def _read_from_offset(chunks: Iterable[bytes], *, offset: int, limit: int, ended: bool) -> LogChunk:
    seen, content = 0, bytearray()
    first = bytearray()
    for chunk in chunks:
        if seen < offset and len(first) < limit:
            first += chunk[: limit - len(first)]
        start = max(0, offset - seen)
        content += chunk[start:]
        seen += len(chunk)
    if seen < offset:
        # It was begun anew since.
        return LogChunk(content=bytes(first), next_offset=len(first), complete=False)
    found = bytes(content[:limit])
    return LogChunk(
        content=found, next_offset=offset + len(found), complete=ended and len(found) < limit
    )


def _read_tail(chunks: Iterable[bytes], *, wanted: int, back: int, ended: bool) -> LogChunk:
    buffer: deque[bytes] = deque()
    buffered = seen = 0
    for chunk in chunks:
        buffer.append(chunk)
        buffered += len(chunk)
        seen += len(chunk)
        while buffered - len(buffer[0]) >= back:
            buffered -= len(buffer.popleft())
    content = b"".join(buffer)[-back:][:wanted]
    start = max(0, seen - back)
    return LogChunk(
        content=content,
        next_offset=start + len(content),
        complete=ended and start + len(content) >= seen,
    )
