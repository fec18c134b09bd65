"""How far a run has come and how long it still takes, as far as can be said honestly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

#: Without news for so long, what was foretold is no longer worth saying.
STALE_AFTER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headway:
    step: int
    total: int
    #: None where the run has not said, or was silent for too long.
    left: timedelta | None
    #: The time since its last report, where that is too long.
    silent_for: timedelta | None

    @property
    def percent(self) -> int:
        return min(100, self.step * 100 // self.total)


def headway_of(
    progress: Mapping[str, Any] | None, *, reported_at: datetime | None, at: datetime
) -> Headway | None:
    """None where the run has not said how many steps there are."""
    step, total = (progress or {}).get("step"), (progress or {}).get("total_steps")
    if not isinstance(step, int) or not isinstance(total, int) or total < 1:
        return None
    since = at - reported_at if reported_at is not None else timedelta()
    stale = since > STALE_AFTER
    foretold = (progress or {}).get("eta_seconds")
    left = None
    if isinstance(foretold, int | float) and not stale:
        # What it said then, less the time that has passed.
        left = max(timedelta(), timedelta(seconds=foretold) - since)
    return Headway(step=step, total=total, left=left, silent_for=since if stale else None)
