"""Changes of rows while a scheduling cycle is between its plan and its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest

from apps.quotas.reconcilers import scheduling_cycles
from controlplane.domain.scheduling.cycle import plan_incrementally
from controlplane.domain.scheduling.plans import (
    SchedulerState,
    SchedulingPlan,
    SchedulingPolicy,
)
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot


@contextmanager
def changed_after_plan(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]
) -> Iterator[list[SchedulingPlan]]:
    """Apply the change after each cycle has planned and before it commits; yield the plans."""
    plans: list[SchedulingPlan] = []

    def plan_then_change(
        snapshot: SchedulingSnapshot,
        policy: SchedulingPolicy,
        state: SchedulerState,
        at: datetime,
    ) -> SchedulingPlan:
        plans.append(plan_incrementally(snapshot, policy, state, at))
        change()
        return plans[-1]

    with monkeypatch.context() as patch:
        patch.setattr(scheduling_cycles, "plan_incrementally", plan_then_change)
        yield plans
