"""Caches of the product between two questions of a test."""

from __future__ import annotations

from typing import Any

from controlplane.web.response_cache import TimedCache


def expire(cache: TimedCache[Any]) -> None:
    """Let the cache compute its value again at the next call, as if its time had passed."""
    cache._cached = None
