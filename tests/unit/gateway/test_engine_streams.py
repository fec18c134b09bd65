from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine_responses import TokenCount
from gateway.engine_streams import (
    MAX_EVENT_BYTES,
    ServerSentEventSplitter,
    StreamBroken,
    StreamRewriter,
    StreamSummary,
)

line_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
# Any bytes that a line can hold; JSON escapes line endings within texts.
lines = st.binary(min_size=1, max_size=20).filter(lambda line: not set(line) & set(b"\r\n"))
events = st.lists(lines, min_size=1, max_size=4)


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """The events of a stream and its bytes, split into chunks anywhere."""
    ending = draw(line_ends)
    expected = [ending.join(event) for event in draw(st.lists(events, max_size=6))]
    content = b"".join(event + ending * 2 for event in expected)
    cuts = sorted(draw(st.lists(st.integers(0, len(content)), max_size=12)))
    bounds = [0, *cuts, len(content)]
    return expected, [content[a:b] for a, b in pairwise(bounds)]


@given(streams())
def test_events_do_not_depend_on_chunk_boundaries(
    stream: tuple[list[bytes], list[bytes]],
) -> None:
    expected, chunks = stream
    splitter = ServerSentEventSplitter()
    found = [event for chunk in chunks for event in splitter.feed(chunk)]
    assert found + splitter.close() == expected


@given(streams())
def test_byte_by_byte_gives_the_same_events_as_all_at_once(
    stream: tuple[list[bytes], list[bytes]],
) -> None:
    content = b"".join(stream[1])
    slow, fast = ServerSentEventSplitter(), ServerSentEventSplitter()
    one_by_one = [event for byte in content for event in slow.feed(bytes([byte]))]
    assert one_by_one + slow.close() == fast.feed(content) + fast.close()


def test_event_is_returned_as_soon_as_it_is_complete() -> None:
    splitter = ServerSentEventSplitter()
    assert splitter.feed(b"data: a\n") == []
    assert splitter.feed(b"\ndata: b") == [b"data: a"]


def test_a_last_event_without_its_blank_line_is_not_lost() -> None:
    splitter = ServerSentEventSplitter()
    assert splitter.feed(b"data: a\n\ndata: b\n") == [b"data: a"]
    assert splitter.close() == [b"data: b"]
    assert splitter.close() == []


def test_oversized_event_breaks_the_stream() -> None:
    splitter = ServerSentEventSplitter()
    with pytest.raises(StreamBroken, match=str(MAX_EVENT_BYTES)):
        splitter.feed(b"x" * (MAX_EVENT_BYTES + 1))
    splitter = ServerSentEventSplitter(limit=7)
    found = [event for byte in b"abcdef\n\nghijklm" for event in splitter.feed(bytes([byte]))]
    assert found == [b"abcdef"]
    with pytest.raises(StreamBroken, match="longer than 7 bytes"):
        splitter.feed(b"n")


def rewriter_of(*, include_usage: bool = False) -> tuple[StreamRewriter, StreamSummary]:
    tally = StreamSummary()
    rewriter = StreamRewriter(
        route="parser", model="/models/inner", include_usage=include_usage, tally=tally
    )
    return rewriter, tally


def event_of(content: Any) -> bytes:
    return b"data: " + json.dumps(content).encode()


def data_of(event: bytes | None) -> Any:
    assert event is not None
    assert event.endswith(b"\n\n")
    return json.loads(event.removeprefix(b"data: "))


def chunk_of(text: str = "", **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": None}
    return {"model": "/models/inner", "choices": [choice], **fields}


@given(st.text(min_size=1))
def test_model_name_is_replaced_and_output_is_unchanged(text: str) -> None:
    rewriter, tally = rewriter_of()
    seen = data_of(rewriter.rewrite(event_of(chunk_of(text))))
    assert seen["model"] == "parser"
    assert seen["choices"][0]["delta"]["content"] == text
    assert tally.chunks == 1


def test_a_text_that_looks_like_a_model_field_stays_as_it_is() -> None:
    rewriter, _ = rewriter_of()
    text = '{"model": "/models/inner"}'
    assert data_of(rewriter.rewrite(event_of(chunk_of(text))))["choices"][0]["delta"] == {
        "content": text
    }


def test_usage_chunk_is_counted_and_removed_unless_requested() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 5}
    report = event_of({"model": "/models/inner", "choices": [], "usage": usage})
    rewriter, tally = rewriter_of()
    assert rewriter.rewrite(report) is None
    assert tally.reported == TokenCount(prompt=3, completion=5)
    rewriter, _ = rewriter_of(include_usage=True)
    assert data_of(rewriter.rewrite(report))["usage"] == usage


def test_usage_in_last_output_chunk_is_removed_from_chunk() -> None:
    rewriter, tally = rewriter_of()
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    seen = data_of(rewriter.rewrite(event_of(chunk_of("end", usage=usage))))
    assert "usage" not in seen
    assert seen["choices"][0]["delta"]["content"] == "end"
    assert tally.reported == TokenCount(prompt=3, completion=1)


def test_output_chunks_are_counted_without_reported_usage() -> None:
    rewriter, tally = rewriter_of()
    role = {"model": "m", "choices": [{"delta": {"role": "assistant", "content": ""}}]}
    for content in (role, chunk_of("a"), chunk_of("b"), chunk_of()):
        rewriter.rewrite(event_of(content))
    assert (tally.reported, tally.chunks) == (None, 2)


def test_addresses_in_stream_errors_are_redacted() -> None:
    rewriter, tally = rewriter_of()
    error = {"error": {"message": "/models/inner at http://10.0.0.7:8000/v1 ran out of memory"}}
    assert data_of(rewriter.rewrite(event_of(error)))["error"] == {
        "message": "parser at [hidden] ran out of memory",
        "type": "upstream_error",
        "param": None,
        "code": "upstream_error",
    }
    assert tally.failed


def test_comments_and_other_fields_are_forwarded() -> None:
    rewriter, _ = rewriter_of()
    assert rewriter.rewrite(b": ping") == b": ping\n\n"
    named = rewriter.rewrite(b"event: chunk\r\ndata: " + json.dumps(chunk_of("a")).encode())
    assert named is not None
    assert named.startswith(b"event: chunk\ndata: {")


def test_done_of_engine_is_not_forwarded() -> None:
    rewriter, tally = rewriter_of()
    assert rewriter.rewrite(b"data: [DONE]") is None
    assert tally.done


@pytest.mark.parametrize("data", [b"nonsense", b"[1]", b"{", b"[" * 100_000])
def test_data_that_is_no_object_breaks_the_stream(data: bytes) -> None:
    rewriter, _ = rewriter_of()
    with pytest.raises(StreamBroken):
        rewriter.rewrite(b"data: " + data)
