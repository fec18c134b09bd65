"""Faults of cards: six levels that all chips share, and how a vendor's codes map to them.

::

    L1 note ─ L2 restart the request ─ L3 restart the job ─ L4 reset when idle ─ L5 reset now ─ L6 isolate

A code that no table knows is a note where its vendor calls it minor, and isolates the card otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum


class FaultLevel(IntEnum):
    """What has to be done, from little to much."""

    NOTE = 1
    RESTART_REQUEST = 2
    RESTART_JOB = 3
    RESET_WHEN_IDLE = 4
    RESET_NOW = 5
    ISOLATE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultMap:
    """One vendor's fault codes."""

    #: Code, as the vendor's tools print it → level.
    levels: Mapping[str, FaultLevel] = field(default_factory=dict)
    #: Where the codes and their meaning were read.
    sources: tuple[str, ...] = ()

    def level(self, code: str, *, minor: bool = False) -> FaultLevel:
        """The level of a code; ``minor`` is what its vendor said of it, should no table know it."""
        known = self.levels.get(code)
        if known is not None:
            return known
        return FaultLevel.NOTE if minor else FaultLevel.ISOLATE
