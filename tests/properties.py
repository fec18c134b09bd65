"""How many examples tests of properties try."""

from __future__ import annotations

import os

#: `make test-full` tries them all; every change is tested with a quarter of them.
SHARE = 1.0 if os.environ.get("NINEFOLD_TEST_FULL") else 0.25


def examples(full: int) -> int:
    return max(10, round(full * SHARE))
