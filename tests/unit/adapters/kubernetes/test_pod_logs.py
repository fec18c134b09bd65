"""Logs by offset out of an API that gives them from their beginning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.adapters.clusters.kubernetes import pod_logs
from controlplane.ports.clusters import LogChunk
from tests.unit.adapters.kubernetes.fake_api import AnsweringApi

WHOLE = b"one\ntwo\nthree\n"
#: Shorter than the words by which a kubelet says that a log is gone: none of them is taken for that.
CONTENT = st.binary(max_size=len("unable to retrieve container logs for ") - 1)


class Speaking(AnsweringApi):
    """Gives the same bytes in small pieces, up to the limit that was asked for."""

    def __init__(self, content: bytes) -> None:
        super().__init__({})
        self._content = content

    def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        read_within: float | None = None,
    ) -> Iterator[bytes]:
        limit = int((query or {}).get("limitBytes", len(self._content)))
        content = self._content[:limit]
        yield from (content[start : start + 3] for start in range(0, len(content), 3))


def read(
    content: bytes, *, offset: int, limit: int, ended: bool = True, saved: bytes = b""
) -> LogChunk:
    return pod_logs.read_log(
        Speaking(content), "/pod", offset=offset, limit=limit, ended=ended, saved=saved
    )


@given(content=CONTENT, offset=st.integers(0, 80), limit=st.integers(1, 80))
def test_reading_on_from_where_the_last_read_ended_gives_the_whole(
    content: bytes, offset: int, limit: int
) -> None:
    at, found = min(offset, len(content)), b""
    while True:
        chunk = read(content, offset=at, limit=limit)
        found, at = found + chunk.content, chunk.next_offset
        if chunk.complete:
            break
    assert found == content[min(offset, len(content)) :]


@given(content=CONTENT, back=st.integers(1, 80), limit=st.integers(1, 80))
def test_a_negative_offset_counts_from_the_end(content: bytes, back: int, limit: int) -> None:
    chunk = read(content, offset=-back, limit=limit)
    start = max(0, len(content) - back)
    assert chunk.content == content[start : start + limit]
    assert chunk.next_offset == start + len(chunk.content)


def test_an_offset_beyond_a_log_that_was_begun_anew_reads_from_its_beginning() -> None:
    chunk = read(WHOLE, offset=5000, limit=4)
    assert (chunk.content, chunk.next_offset, chunk.complete) == (b"one\n", 4, False)


def test_a_log_that_is_gone_is_read_from_what_was_kept() -> None:
    gone = b"unable to retrieve container logs for containerd://5aa85130"
    chunk = read(gone, offset=0, limit=100, saved=WHOLE)
    assert (chunk.content, chunk.complete) == (WHOLE, True)


@pytest.mark.parametrize(
    ("saved", "last", "whole"),
    [
        (b"", b"three\n", b"three\n"),
        (b"one\ntwo\n", b"", b"one\ntwo\n"),
        (b"one\ntwo\nthree\n", b"two\n", b"one\ntwo\nthree\n"),
        (b"one\ntwo\n", b"two\nthree\n", b"one\ntwo\nthree\n"),
        (b"one\n", b"three\n", b"one\nthree\n"),
    ],
)
def test_what_was_saved_goes_on_with_what_came_after(
    saved: bytes, last: bytes, whole: bytes
) -> None:
    assert pod_logs.append_termination_message(saved, last) == whole
