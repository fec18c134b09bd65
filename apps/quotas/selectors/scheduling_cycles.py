"""Policy and durations of scheduling cycles."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings

from apps.quotas.models.scheduling import CYCLE_SECONDS, CyclePhase
from controlplane.domain.scheduling.plans import SchedulingPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseHistogram:
    """Durations of one cycle phase over all cycles of this installation."""

    #: ``load``, ``plan`` or ``commit``.
    phase: str
    cycles: int
    seconds: float
    #: Upper bound in seconds, and the number of cycles within it.
    within: tuple[tuple[float, int], ...]


def cycle_histograms() -> tuple[PhaseHistogram, ...]:
    """A histogram for each recorded phase, by name."""
    return tuple(
        PhaseHistogram(
            phase=row.name,
            cycles=row.cycles,
            seconds=row.seconds,
            within=tuple(zip(CYCLE_SECONDS, row.within, strict=False)),
        )
        for row in CyclePhase.objects.all()
    )


#: Target duration of a cycle with very many placements: the fixed cost of a cycle is spread over more of them.
CYCLE_BUDGET = timedelta(seconds=1.5)


def current_scheduling_policy() -> SchedulingPolicy:
    """The scheduling policy, with the installation's grace period."""
    return SchedulingPolicy(
        grace=timedelta(seconds=settings.NINEFOLD_GRACE_SECONDS), cycle=CYCLE_BUDGET
    )
