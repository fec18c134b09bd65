"""What was measured, beside its goal; and what each scenario came to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One figure, and what it may be; with neither limit it is told and not judged."""

    name: str
    value: float
    unit: str = ""
    most: float | None = None
    least: float | None = None

    @property
    def met(self) -> bool:
        return (self.most is None or self.value <= self.most) and (
            self.least is None or self.value >= self.least
        )

    @property
    def goal(self) -> str:
        if self.most is not None:
            return f"≤ {self.most:g} {self.unit}".rstrip()
        return f"≥ {self.least:g} {self.unit}".rstrip() if self.least is not None else "—"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A scenario's: what went wrong, in words, and its figures."""

    name: str
    wrong: tuple[str, ...] = ()
    metrics: tuple[Measurement, ...] = ()
    summary: str = ""

    @property
    def passed(self) -> bool:
        return not self.wrong and all(metric.met for metric in self.metrics)


@dataclass(slots=True)
class Checks:
    """Collects what does not hold."""

    wrong: list[str] = field(default_factory=list)

    def that(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.wrong.append(otherwise)


def centile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share does not exceed; infinite of none, which meets no goal."""
    if not values:
        return float("inf")
    return sorted(values)[max(0, math.ceil(len(values) * share) - 1)]
