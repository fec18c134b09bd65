"""One cycle over a small fleet, and what came of it, said in few words."""

from __future__ import annotations

from dataclasses import replace

from controlplane.domain.quotas import Entitlement
from controlplane.domain.scheduling.cycle import plan
from controlplane.domain.scheduling.plans import Plan, RefusalCode
from controlplane.domain.scheduling.policies import Policy
from controlplane.domain.scheduling.snapshots import QueueView, RunningView, Snapshot
from tests.unit.domain.scheduling import promises
from tests.unit.domain.scheduling.fleets import AT, NPU, running

BATCH = QueueView(uid="batch", name="batch")


def guaranteed(name: str, cards: int, **kwargs: object) -> QueueView:
    view = QueueView(uid=name, name=name, entitlements={NPU: Entitlement(guaranteed=cards)})
    return replace(view, **kwargs)  # type: ignore[arg-type]


RESEARCH = guaranteed("research", 8)


def lent(name: str, *cards: int, **kwargs: object) -> RunningView:
    """Work of batch on those cards of the node ``n``."""
    return running(name, {"n": cards}, queue="batch", **kwargs)  # type: ignore[arg-type]


def decide(seen: Snapshot, policy: Policy | None = None) -> Plan:
    return plan(seen, policy or Policy(), AT)


def decided(seen: Snapshot, policy: Policy | None = None) -> Plan:
    """The plan, which was found to keep every promise."""
    found = decide(seen, policy)
    promises.check(seen, found)
    return found


def placed(found: Plan) -> list[str]:
    return [one.claim for one in found.placements]


def refused(found: Plan) -> dict[str, RefusalCode]:
    return {one.claim: one.code for one in found.refusals}


def stopped(found: Plan) -> list[str]:
    return sorted(one.claim for one in found.revocations)
