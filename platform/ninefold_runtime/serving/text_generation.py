"""Interface between the application and the text generator, and the way from tokens to text.

A token need not end where a character ends, and a stop string need not begin where a token begins. Both
are solved by holding back: bytes until they make a character, text until it can no longer
become a stop string.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ninefold_runtime.serving.generation_requests import Message, SamplingParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationFinished:
    """The answer is complete."""

    #: ``stop`` or ``length``, as in OpenAI's interface.
    reason: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationFailed:
    """The answer will never be complete."""

    message: str


Event = TextDelta | GenerationFinished | GenerationFailed


class QueueFull(Exception):
    """As many requests wait as may."""


@dataclass(eq=False, slots=True, kw_only=True)
class GenerationRequest:
    """One request on its way. ``on_event`` is called from the generating thread."""

    prompt: Sequence[int]
    sampling: SamplingParameters
    on_event: Callable[[Event], None]
    cancelled: threading.Event = field(default_factory=threading.Event)


class TextGenerator(Protocol):
    """What the application needs of a model."""

    @property
    def context_length(self) -> int: ...

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """:raises RequestRejected: if the model's chat template refuses the messages."""
        ...

    def encode_text(self, text: str) -> list[int]: ...

    def submit(self, ticket: GenerationRequest) -> None:
        """:raises QueueFull: if too many wait already."""
        ...

    def cancel(self, ticket: GenerationRequest) -> None:
        """Nobody waits for the answer any more. Tolerates an ended one."""
        ...

    def load(self) -> tuple[int, int]:
        """Requests that run, and that wait."""
        ...


_INCOMPLETE = "\ufffd"
#: A character has at most four bytes; a longer wait means bytes that never make one.
_LONGEST_WAIT = 8


class Detokenizer:
    """Text of a growing sequence of tokens, piece by piece.

    Only the tokens around the newest piece are decoded again, so that the cost does not grow with the
    length of the answer.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._tokens: list[int] = []
        #: Tokens before ``_begin`` are forgotten; those before ``_given`` have been turned into text.
        self._begin = 0
        self._given = 0

    def push(self, token: int) -> str:
        """The text that this token completes; may be empty."""
        self._tokens.append(token)
        fresh = self._new_text()
        if fresh.endswith(_INCOMPLETE) and len(self._tokens) - self._given < _LONGEST_WAIT:
            return ""
        self._advance_window()
        return fresh

    def finish(self) -> str:
        """What was held back."""
        fresh = self._new_text()
        self._advance_window()
        return fresh

    def _new_text(self) -> str:
        before = self._decode(self._tokens[self._begin : self._given])
        return self._decode(self._tokens[self._begin :])[len(before) :]

    def _advance_window(self) -> None:
        self._begin, self._given = self._given, len(self._tokens)


class StopScanner:
    """Passes text on until one of the stop strings appears, which is cut off."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._pending = ""
        self.stopped = False

    def push(self, text: str) -> str:
        """What of the text so far is sure to be part of the answer."""
        if self.stopped:
            return ""
        self._pending += text
        found = [at for stop in self._stops if (at := self._pending.find(stop)) >= 0]
        if found:
            self.stopped = True
            sure, self._pending = self._pending[: min(found)], ""
            return sure
        keep = max((self._overlap_length(stop) for stop in self._stops), default=0)
        cut = len(self._pending) - keep
        sure, self._pending = self._pending[:cut], self._pending[cut:]
        return sure

    def finish(self) -> str:
        """What was held back for a stop string that did not come."""
        rest, self._pending = self._pending, ""
        return rest

    def _overlap_length(self, stop: str) -> int:
        """Length of the longest end of the held text with which the stop string begins."""
        longest = min(len(stop) - 1, len(self._pending))
        return next(
            (size for size in range(longest, 0, -1) if self._pending.endswith(stop[:size])), 0
        )
