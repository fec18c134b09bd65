"""The company that a load is for, as the scheduler would see it before anything is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.quotas.claims import GangShape, RoleShape
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.snapshots import CardSnapshot, NodeSnapshot, SchedulingSnapshot
from tests.benchmarks.queues.loads import Fleet, Load, WorkSet

#: No plug-in knows it: any card is as good as any other.
CHIP = "plain"


def company(load: Load) -> SchedulingSnapshot:
    """Its nodes and queues.

    A cohort is a queue that is guaranteed all that those below it are, and that borrows from nobody.
    """
    queues = {view.uid: view for view in _queues(load)}
    return SchedulingSnapshot(nodes=tuple(_nodes(load.fleet)), claims=(), queues=queues)


def leaf(load: Load, number: int) -> str:
    """Uid of the queue of that number."""
    cohort, place = divmod(number, load.queues)
    return f"queue-{cohort}-{place}"


def shape_of(work: WorkSet) -> GangShape:
    return GangShape(roles=(RoleShape(name="worker", replicas=work.replicas, cards=work.cards),))


def _queues(load: Load) -> Iterator[QueueSnapshot]:
    total = load.queues * load.guaranteed
    for cohort in range(load.cohorts):
        uid = f"cohort-{cohort}"
        above = ChipQuota(guaranteed=total, cap=total)
        yield QueueSnapshot(uid=uid, name=uid, entitlements={CHIP: above}, borrows=False)
    own = ChipQuota(guaranteed=load.guaranteed, cap=load.cap)
    for number in range(load.cohorts * load.queues):
        uid, above_it = leaf(load, number), f"cohort-{number // load.queues}"
        yield QueueSnapshot(uid=uid, name=uid, parent=above_it, entitlements={CHIP: own})


def _nodes(fleet: Fleet) -> Iterator[NodeSnapshot]:
    for number in range(fleet.nodes):
        rack = {"rack": f"rack-{number * fleet.racks // fleet.nodes}"} if fleet.racks else {}
        yield NodeSnapshot(
            uid=f"node-{number:05}",
            name=f"node-{number:05}",
            cluster="company",
            cards=tuple(
                CardSnapshot(
                    uid=f"card-{number:05}-{index}",
                    index=index,
                    chip=CHIP,
                    state=CardState.USABLE,
                )
                for index in range(fleet.cards)
            ),
            capacity=Resources(cpu=Millicpu(96_000), memory=Bytes(256 * GIB)),
            domains=rack,
        )
