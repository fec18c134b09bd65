"""Following the log of an attempt until it has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from datetime import timedelta

from rest_framework import exceptions, status

from apps.jobs import selectors
from apps.jobs.models import Attempt

#: Followers at once in one process. Each holds a thread of the web server, of which it has twice as many.
MOST_FOLLOWERS = 8
#: A follower is let go after this; it comes back with the number of bytes that it has.
FOLLOW_WITHIN = timedelta(minutes=15)
_POLL_SECONDS = 0.5
_CHUNK = 256 * 1024

_slots = threading.BoundedSemaphore(MOST_FOLLOWERS)


class TooManyFollowers(exceptions.APIException):
    """Every place for following a log is taken."""

    status_code = status.HTTP_429_TOO_MANY_REQUESTS
    default_code = "too-many-followers"
    default_detail = (
        f"{MOST_FOLLOWERS} logs are being followed already; try again later, or poll with offset"
    )
    #: Seconds; becomes Retry-After.
    wait = 5


class Follower:
    """The bytes of an attempt's log as they come. Holds a place until it is closed.

    :raises TooManyFollowers: if there is none.
    """

    def __init__(
        self, attempt: Attempt, *, offset: int, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        if not _slots.acquire(blocking=False):
            raise TooManyFollowers
        self._held = True
        self._chunks = self._follow(attempt, offset)
        self._sleep = sleep

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._chunks)

    def close(self) -> None:
        """Give back the place. The server calls it when the client has left."""
        self._chunks.close()
        if self._held:
            self._held = False
            _slots.release()

    def _follow(self, attempt: Attempt, offset: int) -> Generator[bytes]:
        until = time.monotonic() + FOLLOW_WITHIN.total_seconds()
        while True:
            # Looked at before the log is read: what was written before the end is then in it.
            attempt = selectors.attempt_fresh(attempt)
            chunk = selectors.attempt_log(attempt, offset=offset, limit=_CHUNK)
            if chunk.content:
                offset = chunk.next_offset
                yield chunk.content
            elif attempt.ended_at is not None or time.monotonic() > until:
                return
            else:
                # Sends nothing, but lets the server notice that the client has left.
                yield b""
                self._sleep(_POLL_SECONDS)
