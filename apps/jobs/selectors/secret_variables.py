"""Secret environment variables of jobs: their values, and masking of those values in logs and messages.

A value is masked with one asterisk per byte, so that offsets in a log do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from apps.jobs.models import Job
from controlplane.persistence.encryption import DecryptionFailed, decrypt
from controlplane.ports.clusters import LogChunk

#: Minimum length of a partial value that is masked at the beginning; shorter ones may be ordinary text.
_SHORTEST_PIECE = 4


def secret_values(job: Job) -> dict[str, str]:
    """Values by name, without deleted ones.

    :raises Undecryptable: if the key that encrypted one of them is no longer known.
    """
    # Through the relation, so that a batch of jobs can prefetch it.
    rows = job.secret_variables.all()
    return {row.name: decrypt(row.value).decode() for row in rows if row.value is not None}


def mask_secrets(content: bytes, secrets: Iterable[bytes]) -> bytes:
    """Mask all secrets in the content, and the end of a secret at its beginning."""
    # Longest first, so that a secret that contains another one is masked completely.
    ordered = sorted(secrets, key=len, reverse=True)
    for secret in ordered:
        content = content.replace(secret, b"*" * len(secret))
    for secret in ordered:
        cut = _overlap_length(secret, content)
        if cut >= _SHORTEST_PIECE:
            content = b"*" * cut + content[cut:]
    return content


def secret_masker(job: Job) -> Callable[[str], str]:
    """A function that masks the job's secret values; it returns an empty text if one cannot be decrypted."""
    try:
        secrets = [value.encode() for value in secret_values(job).values()]
    except DecryptionFailed:
        return lambda _text: ""
    return lambda text: (
        mask_secrets(text.encode(), secrets).decode(errors="replace") if secrets else text
    )


def masked_text(text: str, *, job: Job) -> str:
    return secret_masker(job)(text)


def masked_log(
    read: Callable[[int, int], LogChunk], *, job: Job, offset: int, limit: int
) -> LogChunk:
    """A chunk of a job's log with its secret values masked, also values across the border of the chunk.

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
    length = offset - start + limit + margin
    chunk = read(start, length)
    if chunk.next_offset - len(chunk.content) != start:
        # The cluster has only the newest part of the log, which begins later.
        start = offset = chunk.next_offset - len(chunk.content)
    content = (
        mask_secrets(chunk.content, secrets)
        if start == 0
        else _replace_secrets(chunk.content, secrets)
    )
    end = len(content)
    if not chunk.complete and end < length:
        # The end of the log may be the beginning of a value of which the rest follows.
        end -= max(_overlap_length(content, secret) for secret in secrets)
    last = max(offset - start, min(end, offset - start + limit))
    piece = content[offset - start : last]
    return LogChunk(
        content=piece,
        next_offset=offset + len(piece),
        complete=chunk.complete and last >= len(content),
    )


def _replace_secrets(content: bytes, secrets: Iterable[bytes]) -> bytes:
    for secret in sorted(secrets, key=len, reverse=True):
        content = content.replace(secret, b"*" * len(secret))
    return content


def _overlap_length(left: bytes, right: bytes) -> int:
    """Length of the longest proper suffix of ``left`` that is a prefix of ``right``."""
    for length in range(min(len(left), len(right)) - 1, 0, -1):
        if left.endswith(right[:length]):
            return length
    return 0
