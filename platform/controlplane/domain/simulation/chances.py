"""Chance that repeats itself: the same seed draws the same."""

from __future__ import annotations

from random import Random


def chance(*seed: object) -> Random:
    """Draws that depend on the seed alone."""
    return Random(":".join(map(str, seed)))  # noqa: S311 - nothing secret is drawn
