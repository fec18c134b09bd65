"""Limits how many passwords one process hashes at a time.

A password hash takes most of a second of processor time by design. Without a limit, a few dozen parallel log-ins
occupy every processor and every thread of the web server, and nothing else is served. Every path that hashes
(log-in, unknown user names, password change and reset, the admin) uses the hasher, so the limit is there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher

#: Seconds after which a client that was refused should try again.
RETRY_AFTER_SECONDS = 5


class PasswordHashingBusy(Exception):
    """The process hashes as many passwords as it may, and as many more are queued as may be."""


class HashingLimit:
    """At most ``concurrent`` hashes at a time and ``queued`` waiting callers."""

    def __init__(self, *, concurrent: int, queued: int, timeout_seconds: float) -> None:
        self._admitted = threading.BoundedSemaphore(concurrent + queued)
        self._running = threading.BoundedSemaphore(concurrent)
        self._timeout_seconds = timeout_seconds

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold one of the concurrent slots.

        :raises PasswordHashingBusy: if the queue is full, or no slot becomes free within the timeout.
        """
        if not self._admitted.acquire(blocking=False):
            raise PasswordHashingBusy
        try:
            if not self._running.acquire(timeout=self._timeout_seconds):
                raise PasswordHashingBusy
            try:
                yield
            finally:
                self._running.release()
        finally:
            self._admitted.release()


#: One for the process: half of the processors, so that other requests are served meanwhile.
LIMIT = HashingLimit(
    concurrent=settings.NINEFOLD_PASSWORD_HASHES or max(1, (os.cpu_count() or 1) // 2),
    queued=4,
    timeout_seconds=10,
)


class ConcurrencyLimitedPBKDF2PasswordHasher(PBKDF2PasswordHasher):
    """Django's default hasher within :data:`LIMIT`; its hashes are the same."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """:raises PasswordHashingBusy: if the process is hashing too many passwords already."""
        with LIMIT.slot():
            return super().encode(password, salt, iterations)
