"""Real threads, each with a database connection of its own, let loose at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

Result = TypeVar("Result")

#: Seconds after which a thread is taken to hang.
PATIENCE = 120.0


def at_once(*calls: Callable[[], Result]) -> list[Result | BaseException]:
    """What each call gave back, or the exception it raised, in the order of the calls."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Result]) -> Result:
        barrier.wait(timeout=PATIENCE)
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=len(calls)) as pool:
        futures = [pool.submit(run, call) for call in calls]
        return [future.exception(timeout=PATIENCE) or future.result() for future in futures]


def raised(outcomes: Sequence[object], kind: type[Exception]) -> int:
    """How many of them are that exception."""
    return sum(isinstance(outcome, kind) for outcome in outcomes)
