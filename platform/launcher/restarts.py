"""How soon a process that died is started again.

Quickly at first, twice as long each time, and slowly for ever once it is clear that trying quickly
does not help: a fault outside, such as a full disk, may pass without anybody restarting us.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    first_seconds: float = 0.5
    slow_seconds: float = 60.0
    #: Deaths in a row, each within ``steady_seconds``, before restarts become slow.
    quick_deaths: int = 6
    #: Having run for so long, a process counts as healthy again.
    steady_seconds: float = 60.0

    def deaths_in_a_row(self, before: int, *, ran_seconds: float) -> int:
        """The count after one more death."""
        return 1 if ran_seconds >= self.steady_seconds else before + 1

    def is_hopeless(self, deaths: int) -> bool:
        return deaths >= self.quick_deaths

    def delay_seconds(self, deaths: int) -> float:
        if self.is_hopeless(deaths):
            return self.slow_seconds
        return min(self.slow_seconds, self.first_seconds * 2.0 ** (deaths - 1))
