"""Interface between the application and the text generator: requests and events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ninefold_runtime.serving.requests import Message, Sampling


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
    """One request on its way. ``tell`` is called from the generating thread."""

    prompt: Sequence[int]
    sampling: Sampling
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
