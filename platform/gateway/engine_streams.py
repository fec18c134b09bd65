"""Server-sent events of an engine: split from its byte stream and rewritten for the client.

Pure: bytes in, bytes out. The result does not depend on how the network split the bytes, and each
event remains a separate event.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from gateway.engine_responses import (
    TokenCount,
    compact_json,
    redacted_error_object,
    redacted_stream_error,
    token_count,
    with_model_name,
)
from gateway.operations import FORMATS, OperationFormat, RouteOperation

#: An event that grows beyond this ends the stream; engines send a few hundred bytes.
MAX_EVENT_BYTES = 8 * 1024 * 1024

DONE = b"data: [DONE]\n\n"

# Atomic groups: CR LF is one line ending and must never be taken for two.
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE_ENDING = re.compile(rb"\r\n|\n|\r")
#: A blank line is at most four bytes, so one may begin this far before the end of the searched part.
_OVERLAP = 3


class StreamBroken(Exception):
    """The engine's bytes are not a stream of events, or ended too early."""


class ServerSentEventSplitter:
    """Splits bytes into events, for any line endings and any chunk boundaries."""

    def __init__(self, *, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        #: Extended in place: an event may come in thousands of chunks.
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that this chunk completes, each without its closing blank line.

        :raises StreamBroken: if an event exceeds ``limit`` bytes.
        """
        start = max(0, len(self._rest) - _OVERLAP)
        content: bytes | bytearray = chunk
        if self._rest:
            self._rest += chunk
            content = self._rest
        events: list[bytes] = []
        begin = 0
        while (blank := _BLANK_LINE.search(content, max(start, begin))) is not None:
            _append_event(events, content[begin : blank.start()])
            begin = blank.end()
        if begin or content is chunk:
            self._rest = bytearray(content[begin:])
        if len(self._rest) > self._limit:
            raise StreamBroken(f"an event is longer than {self._limit} bytes")
        return events

    def close(self) -> list[bytes]:
        """The last event, if the engine omitted the blank line after it."""
        events: list[bytes] = []
        _append_event(events, self._rest)
        self._rest = bytearray()
        return events


def _append_event(events: list[bytes], block: bytes | bytearray) -> None:
    # A chunk may end between the CR and the LF of a blank line; the LF then begins the next block.
    event = bytes(block.strip(b"\r\n"))
    if event:
        events.append(event)


@dataclass(slots=True, kw_only=True)
class StreamSummary:
    """What has been read of a stream so far."""

    #: The usage that the engine reported last; None if it has reported none.
    reported: TokenCount | None = None
    #: Events with a part of the output; about one a token.
    chunks: int = 0
    #: A ``finish_reason`` or a final event was sent, so the end of the bytes is the end of the response.
    finished: bool = False
    #: The engine sent its own ``[DONE]``.
    done: bool = False
    #: The engine reported an error.
    failed: bool = False

    @property
    def complete(self) -> bool:
        """Whether the stream may end here."""
        return self.done or self.finished or self.failed


class StreamRewriter:
    """Puts the route's name into an engine's events and counts their tokens."""

    def __init__(
        self,
        *,
        route: str,
        model: str,
        include_usage: bool,
        tally: StreamSummary,
        form: OperationFormat = FORMATS[RouteOperation.CHAT],
    ) -> None:
        self._route = route
        self._model = model
        self._include_usage = include_usage
        self._form = form
        self.tally = tally

    def rewrite(self, event: bytes) -> bytes | None:
        """The event for the client with its blank line; None if it is not for the client.

        :raises StreamBroken: if its data is neither a JSON object nor ``[DONE]``.
        """
        others, data = _split_event(event)
        if data is None:
            return event + b"\n\n"
        if data == b"[DONE]":
            self.tally.done = True
            return None
        try:
            content = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise StreamBroken(f"an event is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise StreamBroken("an event is not a JSON object")
        if content.get("error") is not None or "error" in (
            content.get("object"),
            content.get("type"),
        ):
            self.tally.failed = True
            failure = redacted_stream_error(content, route=self._route, model=self._model)
            return error_event(failure.as_object(self._form.errors))
        if self._form.final_events:
            self._count_typed_event(content)
        elif not self._count_event(content):
            return None
        content = with_model_name(content, route=self._route)
        return others + b"data: " + compact_json(content) + b"\n\n"

    def _count_event(self, content: dict[str, Any]) -> bool:
        """Count an event; whether it is for the client."""
        choices = content.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self.tally.chunks += _choice_has_content(choice)
                self.tally.finished |= choice.get("finish_reason") is not None
        if content.get("usage") is None:
            return True
        self.tally.reported = token_count(content["usage"])
        if self._include_usage:
            return True
        del content["usage"]
        # An event only for usage; some engines report usage in the last event with output.
        return bool(choices)

    def _count_typed_event(self, content: dict[str, Any]) -> None:
        """Count an event with a ``type``: a part of the output, usage, or the end."""
        kind = content.get("type")
        if not isinstance(kind, str):
            # Engines stream transcripts as they stream chats.
            self._count_event(content)
            return
        # Speech has its part of the output in ``audio``.
        self.tally.chunks += kind.endswith((".delta", "_delta")) and (
            "delta" in content or "audio" in content
        )
        inner = content.get("response") or content.get("message")
        if isinstance(inner, dict):
            self._add_usage(inner.get("usage"))
            if isinstance(inner.get("error"), dict):
                self.tally.failed = True
                inner["error"] = redacted_error_object(
                    inner["error"], route=self._route, model=self._model
                )
        self._add_usage(content.get("usage"))
        self.tally.finished |= kind in self._form.final_events

    def _add_usage(self, usage: object) -> None:
        """Messages report their input at the start and their output at the end."""
        if usage is None:
            return
        count = token_count(usage)
        before = self.tally.reported or TokenCount(prompt=0, completion=0)
        self.tally.reported = TokenCount(
            prompt=max(before.prompt, count.prompt),
            completion=max(before.completion, count.completion),
        )


def _split_event(event: bytes) -> tuple[bytes, bytes | None]:
    """The lines that are not data, each with its line ending, and the data; None if there is none."""
    if event.startswith(b"data:") and b"\n" not in event and b"\r" not in event:
        return b"", event[5:].strip()
    others: list[bytes] = []
    data: list[bytes] = []
    for line in _LINE_ENDING.split(event):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        else:
            others.append(line + b"\n")
    return b"".join(others), b"\n".join(data).strip() if data else None


def _choice_has_content(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta")
    if isinstance(delta, dict):
        return any(
            delta.get(field)
            for field in ("content", "reasoning_content", "reasoning", "tool_calls", "refusal")
        )
    return bool(choice.get("text"))


def error_event(content: dict[str, object]) -> bytes:
    """An error as an event, for streams whose status has been sent."""
    name = b"event: error\n" if content.get("type") == "error" else b""
    return name + b"data: " + compact_json(content) + b"\n\n"
