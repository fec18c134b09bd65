"""How long scheduling cycles took."""

from __future__ import annotations

from dataclasses import dataclass

from apps.quotas.models import CyclePhase

#: Upper bounds of the histograms, in seconds.
CYCLE_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseHistogram:
    """One step of the cycle over all cycles of this installation."""

    #: ``load``, ``plan`` or ``commit``.
    phase: str
    cycles: int
    seconds: float
    #: Upper bound in seconds, and how many cycles took at most that long.
    within: tuple[tuple[float, int], ...]


def cycle_histograms() -> tuple[PhaseHistogram, ...]:
    """One for each phase that was ever measured, by name."""
    return tuple(
        PhaseHistogram(
            phase=row.name,
            cycles=row.cycles,
            seconds=row.seconds,
            within=tuple(zip(CYCLE_SECONDS, row.within, strict=False)),
        )
        for row in CyclePhase.objects.all()
    )
