"""Waiting on a condition, with a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(condition: Callable[[], Found | None], *, within: float = 30.0, what: str = "") -> Found:
    """The condition's first truthy value.

    :raises AssertionError: if there is none in time.
    """
    deadline = time.monotonic() + within
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: {what or condition}")
        time.sleep(0.02)
