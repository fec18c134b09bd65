"""What an act needs, on a machine and in a process that do other things as well."""

from __future__ import annotations

import time
from collections.abc import Callable

ITERATIONS = 3


def seconds_of(call: Callable[[], object]) -> float:
    """Of this process's processors, the quickest of three times.

    Any one of them may also pay for the collection of what a thousand tests before have left.
    """
    found = []
    for _ in range(ITERATIONS):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)
