"""How often something has happened lately. Each process counts for itself."""

from __future__ import annotations

from django.core.cache import cache


def count_within(key: str, *, seconds: int) -> int:
    """How often this was called with the key, now included, in the window that its first call opened."""
    cache.add(key, 0, timeout=seconds)
    try:
        return cache.incr(key)
    except ValueError:
        # The window ended between the two.
        cache.set(key, 1, timeout=seconds)
        return 1
