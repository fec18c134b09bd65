"""Secret environment variables of jobs: their values, and texts in which those values are masked.

A value is masked by as many asterisks as it has bytes, so that offsets of a log stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from apps.jobs.models import Job
from controlplane.persistence.encryption import Undecryptable, decrypt
from controlplane.ports.clusters import LogChunk

#: Shorter pieces of a value at the border of a text are too likely to be ordinary text.
_SHORTEST_PIECE = 4


def secret_values(job: Job) -> dict[str, str]:
    """The values by name, of those that have not been deleted.

    :raises Undecryptable: if the key that encrypted one of them is no longer known.
    """
    # Read through the relation, so that a batch of jobs can prefetch it.
    rows = job.secret_variables.all()
    return {row.name: decrypt(row.value).decode() for row in rows if row.value is not None}


def mask(content: bytes, secrets: Iterable[bytes]) -> bytes:
    """The content without any of the secrets, and without the end of one that it begins with."""
    # Longest first: of a secret within a secret nothing of the longer one is left.
    ordered = sorted(secrets, key=len, reverse=True)
    for secret in ordered:
        content = content.replace(secret, b"*" * len(secret))
    for secret in ordered:
        cut = _overlap(secret, content)
        if cut >= _SHORTEST_PIECE:
            content = b"*" * cut + content[cut:]
    return content


def masker(job: Job) -> Callable[[str], str]:
    """A function that masks the values of the job's secret variables; it returns nothing if one is unreadable."""
    try:
        secrets = [value.encode() for value in secret_values(job).values()]
    except Undecryptable:
        return lambda _text: ""
    return lambda text: mask(text.encode(), secrets).decode(errors="replace") if secrets else text


def masked_text(text: str, *, job: Job) -> str:
    return masker(job)(text)


def masked_log(
    read: Callable[[int, int], LogChunk], *, job: Job, offset: int, limit: int
) -> LogChunk:
    """A piece of a job's log without the values of its secret variables, also where one lies across its border.

    :param read: the log itself, from an offset, up to a number of bytes.
    :param offset: negative counts from the end.
    """
    secrets = [value.encode() for value in secret_values(job).values()]
    if not secrets:
        return read(offset, limit)
    if offset < 0:
        first = read(offset, 1)
        offset = first.next_offset - len(first.content)
    margin = max(map(len, secrets)) - 1
    start = max(0, offset - margin)
    wanted = offset - start + limit + margin
    chunk = read(start, wanted)
    if chunk.next_offset - len(chunk.content) != start:
        # It began anew: the cluster keeps the newest part of a log only.
        start = offset = chunk.next_offset - len(chunk.content)
    content = mask(chunk.content, secrets) if start == 0 else _replaced(chunk.content, secrets)
    end = len(content)
    if not chunk.complete and end < wanted:
        # More may follow at any moment, and what is there may be the beginning of a value.
        end -= max(_overlap(content, secret) for secret in secrets)
    last = max(offset - start, min(end, offset - start + limit))
    piece = content[offset - start : last]
    return LogChunk(
        content=piece,
        next_offset=offset + len(piece),
        complete=chunk.complete and last >= len(content),
    )


def _replaced(content: bytes, secrets: Iterable[bytes]) -> bytes:
    for secret in sorted(secrets, key=len, reverse=True):
        content = content.replace(secret, b"*" * len(secret))
    return content


def _overlap(left: bytes, right: bytes) -> int:
    """Length of the longest proper part of the shorter that ``left`` ends and ``right`` begins with."""
    for length in range(min(len(left), len(right)) - 1, 0, -1):
        if left.endswith(right[:length]):
            return length
    return 0
