"""Server-sent events: cut from a byte stream, and an engine's made the route's own.

Pure: bytes in, bytes out. The cut does not depend on how the network split the bytes, and every
event stays an event of its own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from gateway.encodings import compact_json
from gateway.replies import TokenCount, renamed, scrubbed_error, token_count

#: An event that grows beyond this ends the stream; engines send a few hundred bytes.
LARGEST_EVENT_BYTES = 8 * 1024 * 1024

DONE = b"data: [DONE]\n\n"

# Atomic groups: CR LF is one line ending and must never be taken for two.
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE_ENDING = re.compile(rb"\r\n|\n|\r")
#: A blank line is at most four bytes, so one may begin this far before what was searched already.
_OVERLAP = 3


class StreamBroken(Exception):
    """The engine's bytes are not a stream of events, or ended too early."""


class EventSplitter:
    """Cuts bytes into events, whatever the line endings and wherever the pieces begin."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The events that this piece completes, each without its closing blank line.

        :raises StreamBroken: if an event exceeds :data:`LARGEST_EVENT_BYTES`.
        """
        start = max(0, len(self._rest) - _OVERLAP)
        content = self._rest + piece if self._rest else piece
        events: list[bytes] = []
        begin = 0
        while (blank := _BLANK_LINE.search(content, max(start, begin))) is not None:
            _append(events, content[begin : blank.start()])
            begin = blank.end()
        self._rest = content[begin:] if begin else content
        if len(self._rest) > LARGEST_EVENT_BYTES:
            raise StreamBroken(f"an event is longer than {LARGEST_EVENT_BYTES} bytes")
        return events

    def close(self) -> list[bytes]:
        """The last event where the engine left out the blank line after it."""
        events: list[bytes] = []
        _append(events, self._rest)
        self._rest = b""
        return events


def _append(events: list[bytes], block: bytes) -> None:
    # A piece may end between the CR and the LF of a blank line; the LF then opens the next block.
    event = block.strip(b"\r\n")
    if event:
        events.append(event)


@dataclass(slots=True, kw_only=True)
class StreamTally:
    """What a stream has shown so far."""

    #: What the engine reported last; None if it has not reported.
    reported: TokenCount | None = None
    #: Events that carried a part of the answer; about one a token.
    pieces: int = 0
    #: A reason to finish was given, so that an end of the bytes is the end of the answer.
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
    """Gives an engine's events the route's name and keeps count of them."""

    def __init__(self, *, route: str, model: str, wants_usage: bool, tally: StreamTally) -> None:
        self._route = route
        self._model = model
        self._wants_usage = wants_usage
        self.tally = tally

    def rewrite(self, event: bytes) -> bytes | None:
        """The event for the client with its blank line; None where the client must not see it.

        :raises StreamBroken: if its data is neither a JSON object nor ``[DONE]``.
        """
        others, data = _parts(event)
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
        if content.get("error") is not None or content.get("object") == "error":
            self.tally.failed = True
            content = scrubbed_error(content, route=self._route, model=self._model)
        elif not self._count(content):
            return None
        content = renamed(content, route=self._route)
        return others + b"data: " + compact_json(content) + b"\n\n"

    def _count(self, content: dict[str, Any]) -> bool:
        """Take note of a chunk; whether the client is to see it."""
        choices = content.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self.tally.pieces += _carries_answer(choice)
                self.tally.finished |= choice.get("finish_reason") is not None
        if content.get("usage") is None:
            return True
        self.tally.reported = token_count(content["usage"])
        if self._wants_usage:
            return True
        del content["usage"]
        # The chunk that exists only to report usage; some engines report on the last real one.
        return bool(choices)


def _parts(event: bytes) -> tuple[bytes, bytes | None]:
    """The lines that are not data, each with its ending, and the data; None if there is none."""
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


def _carries_answer(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta")
    if isinstance(delta, dict):
        return any(
            delta.get(field)
            for field in ("content", "reasoning_content", "reasoning", "tool_calls", "refusal")
        )
    return bool(choice.get("text"))


def error_event(content: dict[str, object]) -> bytes:
    """An error after the answer has begun: the status can no longer tell it."""
    return b"data: " + compact_json(content) + b"\n\n"
