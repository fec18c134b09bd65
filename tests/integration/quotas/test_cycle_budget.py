"""The size of a cycle adapts to the duration of the last ones."""

from __future__ import annotations

from datetime import timedelta

from apps.quotas.reconcilers.scheduling_cycles import CycleBudget
from controlplane.domain.scheduling.plans import SchedulingPolicy

POLICY = SchedulingPolicy(
    placements_per_cycle=200, attempts_per_cycle=2000, cycle=timedelta(seconds=1)
)


def test_short_unfinished_cycles_grow_to_the_target_duration() -> None:
    budget = CycleBudget()
    assert budget.scaled(POLICY) == POLICY
    for _ in range(12):
        placements = budget.scaled(POLICY).placements_per_cycle
        # A fifth of a second to look at all, and a millisecond for each.
        budget.record(0.2 + placements / 1000, policy=POLICY, unfinished=True)

    scaled = budget.scaled(POLICY)
    assert 700 < scaled.placements_per_cycle <= 800
    assert 7000 < scaled.attempts_per_cycle <= 8000


def test_long_cycles_shrink_to_the_bounds_of_the_policy() -> None:
    budget = CycleBudget(factor=4.0)
    budget.record(2.0, policy=POLICY, unfinished=False)
    assert budget.scaled(POLICY).placements_per_cycle == 400
    budget.record(60.0, policy=POLICY, unfinished=True)
    assert budget.scaled(POLICY) == POLICY


def test_a_policy_without_target_duration_is_not_scaled() -> None:
    budget, fixed = CycleBudget(), SchedulingPolicy(placements_per_cycle=1)
    budget.record(0.001, policy=fixed, unfinished=True)
    assert budget.scaled(fixed) == fixed
