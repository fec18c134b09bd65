"""Waiting on conditions, with a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    read: Callable[[], T],
    done: Callable[[T], bool],
    *,
    within: float,
    what: str,
    every: float = 0.5,
) -> T:
    """The first value that is ``done``.

    :raises TimeoutError: naming what was waited for and the last value seen.
    """
    deadline = time.monotonic() + within
    while True:
        value = read()
        if done(value):
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {within:.0f} s; last seen: {value}")
        time.sleep(every)
