"""What a queue is told, as values: whether it takes work."""

from __future__ import annotations

from enum import StrEnum


class QueueState(StrEnum):
    #: Takes claims and admits them.
    OPEN = "open"
    #: Takes no new claims; those that wait are still admitted, what runs goes on.
    DRAINING = "draining"
    #: Takes and admits nothing; what runs goes on.
    CLOSED = "closed"
