"""One cycle over a small fleet, and what came of it, said in few words."""

from __future__ import annotations

from dataclasses import replace

from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import PendingReasonCode, SchedulingPlan, SchedulingPolicy
from controlplane.domain.scheduling.snapshots import RunningClaim, SchedulingSnapshot
from tests.unit.domain.scheduling import plan_invariants
from tests.unit.domain.scheduling.fleets import AT, NPU, running

BATCH = QueueSnapshot(uid="batch", name="batch")


def guaranteed(name: str, cards: int, **kwargs: object) -> QueueSnapshot:
    view = QueueSnapshot(uid=name, name=name, entitlements={NPU: ChipQuota(guaranteed=cards)})
    return replace(view, **kwargs)  # type: ignore[arg-type]


RESEARCH = guaranteed("research", 8)


def lent(name: str, *cards: int, **kwargs: object) -> RunningClaim:
    """Work of batch on those cards of the node ``n``."""
    return running(name, {"n": cards}, queue="batch", **kwargs)  # type: ignore[arg-type]


def decide(seen: SchedulingSnapshot, policy: SchedulingPolicy | None = None) -> SchedulingPlan:
    return plan_cycle(seen, policy or SchedulingPolicy(), AT)


def decided(seen: SchedulingSnapshot, policy: SchedulingPolicy | None = None) -> SchedulingPlan:
    """The plan, which was found to keep every promise."""
    found = decide(seen, policy)
    plan_invariants.check(seen, found)
    return found


def placed(found: SchedulingPlan) -> list[str]:
    return [one.claim for one in found.placements]


def refused(found: SchedulingPlan) -> dict[str, PendingReasonCode]:
    return {one.claim: one.code for one in found.pending}


def stopped(found: SchedulingPlan) -> list[str]:
    return sorted(one.claim for one in found.revocations)
