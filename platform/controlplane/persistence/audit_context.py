"""The request behind a change: set where a request arrives, read where its audit entry is written.

A context variable, so that the layers in between need not pass it on. Controllers and commands have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditContext:
    """The request behind what happens now."""

    #: IP address of the client; None outside of a request.
    address: str | None = None
    request_id: str = ""


_NONE = AuditContext()
_current: ContextVar[AuditContext] = ContextVar("origin", default=_NONE)


def current_audit_context() -> AuditContext:
    """Of what happens now in this thread."""
    return _current.get()


@contextmanager
def use_audit_context(context: AuditContext) -> Iterator[None]:
    """Everything within happens because of that request."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)
