"""Interface between the text operations and the generator, and the way from tokens to text.

A token need not end where a character ends, and a stop string need not begin where a token begins. Both
are solved by holding back: bytes until they make a character, text until it can no longer
become a stop string.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from ninefold_runtime.serving.generation_requests import Message, SamplingParameters
from ninefold_runtime.serving.image_inputs import ImageInput
from ninefold_runtime.serving.tool_calls import ToolCall, ToolUse


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """A token and the natural logarithm of its probability, before any sampling parameter or grammar."""

    token: bytes
    #: None for the first token of a prompt, which nothing predicts.
    logprob: float | None
    #: The likeliest tokens at this place, likeliest first.
    alternatives: tuple[tuple[bytes, float], ...] = ()


def token_text(token: bytes) -> str:
    """The token as text; one that is not whole characters as OpenAI writes it, so that texts are unique."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in token)


def logprob_document(token: TokenLogprob) -> dict[str, Any]:
    """The token as chats and responses have it."""
    best = [_logprob_document(other, logprob) for other, logprob in token.alternatives]
    return {**_logprob_document(token.token, token.logprob or 0.0), "top_logprobs": best}


def _logprob_document(token: bytes, logprob: float) -> dict[str, Any]:
    return {"token": token_text(token), "logprob": logprob, "bytes": list(token)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """More text of the answer with that index."""

    text: str
    index: int = 0
    #: Whether the model thinks aloud rather than answers.
    is_reasoning: bool = False
    #: Of the tokens since the last event of this answer.
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """A whole call of a tool."""

    call: ToolCall
    index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceFinished:
    """One answer is complete."""

    #: ``stop``, ``length`` or ``tool_calls``, as in OpenAI's interface.
    reason: str
    index: int = 0
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationFinished:
    """All answers are complete."""

    prompt_tokens: int
    completion_tokens: int


Event = TextDelta | ToolCallDelta | ChoiceFinished | GenerationFinished


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """Prompts as tokens, and what is wanted for each. The answers to the first prompt come first."""

    prompts: Sequence[Sequence[int]]
    sampling: SamplingParameters
    choices: int = 1
    #: As in ``TextRequest``.
    logprobs: int | None = None
    echo: bool = False
    grammar: str | None = None
    #: Whether the answer is a message of a chat, with tool calls and reasoning to be told from its text.
    is_chat: bool = False
    tools: ToolUse | None = None
    #: Name of the LoRA adapter that is applied; None for the model as it is.
    adapter: str | None = None
    #: Images of a chat as the model reads them, by the names of its arguments; they belong to every prompt.
    image_tensors: Mapping[str, Any] = field(default_factory=dict)


#: Applies the LoRA adapter of that name while the context is open; None: the model as it is.
AdapterSelector = Callable[[str | None], AbstractContextManager[None]]


class TextGenerator(Protocol):
    """What the operations need of a model."""

    @property
    def context_length(self) -> int: ...

    def encode_chat(
        self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]]
    ) -> list[int]:
        """:raises RequestRejected: if the model's chat template refuses the messages or has no tools."""

    def encode_images(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]],
        images: Sequence[ImageInput],
    ) -> tuple[list[int], Mapping[str, Any]]:
        """The tokens of a chat with images, and ``GenerationRequest.image_tensors``. Not called twice at once.

        :raises RequestRejected: as ``encode_chat``, or if the model reads no images, or not these.
        """

    def encode_text(self, text: str) -> list[int]: ...

    def check_tokens(self, tokens: Sequence[int]) -> None:
        """:raises RequestRejected: if the model does not have one of the tokens."""

    def check_grammar(self, grammar: str, *, param: str) -> None:
        """:raises RequestRejected: if the grammar is not one that answers can be constrained to."""

    def generate(
        self,
        request: GenerationRequest,
        emit: Callable[[Event], None],
        cancelled: threading.Event,
    ) -> None:
        """Emit the answers as they come. Called from one thread only."""


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
