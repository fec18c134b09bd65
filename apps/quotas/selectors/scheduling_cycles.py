"""Policy of scheduling cycles."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from controlplane.domain.scheduling.plans import SchedulingPolicy

#: Target duration of a cycle with very many placements: the fixed cost of a cycle is spread over more of them.
CYCLE_BUDGET = timedelta(seconds=1.5)


def current_scheduling_policy() -> SchedulingPolicy:
    """The scheduling policy, with the installation's grace period."""
    return SchedulingPolicy(
        grace=timedelta(seconds=settings.NINEFOLD_GRACE_SECONDS), cycle=CYCLE_BUDGET
    )
