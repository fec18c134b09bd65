"""How work and time belong together where some cards are slow for a while.

::

    work                      ╱
     │                ___––––╱    a slow card holds up its whole gang:
     │         ___––––            for that while one second of work takes longer
     │       ╱
     │    ╱
     └──────────────────────────▶ time
        up_at   slow     well

All of a gang waits for its slowest card, so the largest slowness of its cards is that of the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.domain.simulation.troubles import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The work of one gang, in seconds of the simulation."""

    #: When it begins, with what was done before that.
    since: datetime
    begun: float = 0.0
    #: Seconds of the simulation in one of the clock.
    speed: float = 1.0
    #: Those of its cards that are slow at some time.
    slow: tuple[Trouble, ...] = ()

    def done(self, at: datetime) -> float:
        """Work done by then."""
        work = self.begun
        for start, end, rate in self._stretches():
            if start >= at:
                break
            stop = min(at, end) if end else at
            work += (stop - start).total_seconds() * rate
        return work

    def reached(self, work: float) -> datetime:
        """When so much will have been done."""
        left = work - self.begun
        for start, end, rate in self._stretches():
            room = (end - start).total_seconds() * rate if end else None
            if room is None or left <= room:
                return start + timedelta(seconds=max(0.0, left) / rate)
            left -= room
        raise AssertionError("the last stretch has no end")

    def slowness(self, at: datetime) -> float:
        """How many times longer work takes then."""
        return max((one.slowness for one in self.slow if one.holds(at)), default=1.0)

    def _stretches(self) -> Iterator[tuple[datetime, datetime | None, float]]:
        """From, until and the rate between; the last has no end."""
        turns = sorted({turn for turn in _turns(self.slow) if turn > self.since})
        starts = [self.since, *turns]
        for start, end in zip(starts, [*turns, None], strict=True):
            yield start, end, self.speed / self.slowness(start)


def _turns(troubles: Iterable[Trouble]) -> Iterator[datetime]:
    for trouble in troubles:
        yield trouble.since
        if trouble.until is not None:
            yield trouble.until
