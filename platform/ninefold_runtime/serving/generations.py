"""What passes between the application and whatever generates: tickets and events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ninefold_runtime.serving.requests import Message, Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The answer is complete."""

    #: ``stop`` or ``length``, as in OpenAI's interface.
    reason: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The answer will never be complete."""

    message: str


Event = Piece | Finished | Failed


class Overloaded(Exception):
    """As many requests wait as may."""


@dataclass(eq=False, slots=True, kw_only=True)
class Ticket:
    """One request on its way. ``tell`` is called from the generating thread."""

    prompt: Sequence[int]
    sampling: Sampling
    tell: Callable[[Event], None]
    cancelled: threading.Event = field(default_factory=threading.Event)


class Generator(Protocol):
    """What the application needs of a model."""

    @property
    def context_length(self) -> int: ...

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """:raises Rejected: if the model's chat template refuses the messages."""
        ...

    def encode_text(self, text: str) -> list[int]: ...

    def submit(self, ticket: Ticket) -> None:
        """:raises Overloaded: if too many wait already."""
        ...

    def cancel(self, ticket: Ticket) -> None:
        """Nobody waits for the answer any more. Tolerates an ended one."""
        ...

    def load(self) -> tuple[int, int]:
        """Requests that run, and that wait."""
        ...
