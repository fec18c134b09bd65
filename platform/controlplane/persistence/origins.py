"""Where a change comes from: known where a request arrives, needed where its audit row is written.

Everything between would otherwise have to hand it on. Loops and commands have no origin.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The request behind what happens now."""

    #: IP address of the client; None outside of a request.
    address: str | None = None
    request_id: str = ""


_NONE = Origin()
_current: ContextVar[Origin] = ContextVar("origin", default=_NONE)


def origin() -> Origin:
    """Of what happens now in this thread."""
    return _current.get()


@contextmanager
def coming_from(source: Origin) -> Iterator[None]:
    """Everything within happens because of that request."""
    token = _current.set(source)
    try:
        yield
    finally:
        _current.reset(token)
