"""Small fleets and claims, said in few words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.common.topology import Geometry
from controlplane.domain.quotas.claims import WHOLE_CARD, GangShape, RoleShape
from controlplane.domain.quotas.queues import QueueSnapshot
from controlplane.domain.scheduling.node_table import NodeTable
from controlplane.domain.scheduling.snapshots import (
    CardSelection,
    CardSnapshot,
    ClaimSnapshot,
    NodeSnapshot,
    ReplicaPlacement,
    RunningClaim,
    SchedulingSnapshot,
)

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
NPU = "ascend-910b3"
GPU = "nvidia-h800"
RESEARCH = QueueSnapshot(uid="research", name="research")
#: Two rings of four, as on some boards with eight accelerators.
RINGS = Geometry(sizes=(1, 2, 4, 8), rings=((0, 1, 2, 3), (4, 5, 6, 7)))


def hours(amount: float) -> timedelta:
    return timedelta(hours=amount)


def node(
    name: str,
    cards: int = 8,
    *,
    chip: str = NPU,
    busy: Iterable[int] = (),
    faulty: Iterable[int] = (),
    memory: int = 64,
    cpu: int = 64,
    owns_cpu: bool = False,
    schedulable: bool = True,
    cluster: str = "c1",
    geometry: Geometry | None = None,
    domains: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    binding: CardSelection = CardSelection.CARD,
) -> NodeSnapshot:
    """``memory`` in GiB, ``cpu`` in cores; the cards at the ``busy`` indices are held by somebody unknown."""
    held, ill = set(busy), set(faulty)
    return NodeSnapshot(
        uid=name,
        name=name,
        cluster=cluster,
        cards=tuple(
            CardSnapshot(
                uid=f"{name}/{index}",
                index=index,
                chip=chip,
                state=CardState.ISOLATED if index in ill else CardState.USABLE,
                held_by="somebody" if index in held else None,
            )
            for index in range(cards)
        ),
        capacity=Resources(cpu=Millicpu(cpu * 1000), memory=Bytes(memory * GIB)),
        owns_cpu=owns_cpu,
        schedulable=schedulable,
        geometries={chip: geometry} if geometry else {},
        domains=domains or {},
        labels=labels or {},
        binding=binding,
    )


def role(
    cards: int = 1,
    replicas: int = 1,
    *,
    name: str = "trainer",
    share: int = WHOLE_CARD,
    least: int = 0,
    memory: int = 0,
    cpu: int = 0,
) -> RoleShape:
    return RoleShape(
        name=name,
        replicas=replicas,
        cards=cards,
        share=share,
        least=least,
        limits=Resources(cpu=Millicpu(cpu * 1000), memory=Bytes(memory * GIB)),
    )


def claim(
    name: str,
    *roles: RoleShape,
    queue: str = "research",
    chips: tuple[str, ...] = (NPU,),
    equal_chips: int = 1,
    priority: int = 0,
    minute: float = 0,
    selector: Mapping[str, str] | None = None,
    within: str = "",
    near: str = "",
    runtime: timedelta | None = None,
    user: str = "",
) -> ClaimSnapshot:
    """It asked ``minute`` minutes after ``AT``; without roles it is one replica of one card."""
    return ClaimSnapshot(
        uid=name,
        queue=queue,
        shape=GangShape(roles=roles or (role(),)),
        chips=chips,
        equal_chips=equal_chips,
        priority=priority,
        created_at=AT + timedelta(minutes=minute),
        selector=selector or {},
        within=within,
        near=near,
        runtime=runtime,
        user=user,
    )


def running(
    name: str,
    cards: Mapping[str, Iterable[int]],
    *,
    chip: str = NPU,
    queue: str = "research",
    priority: int = 0,
    since: timedelta = timedelta(hours=2),
    saved: timedelta | None = timedelta(minutes=10),
    ends_in: timedelta | None = None,
    preemptible: bool = True,
    share: int = WHOLE_CARD,
    within: str = "",
) -> RunningClaim:
    """One replica on each of those nodes, with the cards at those indices.

    :param since: how long it has run.
    :param saved: how long ago it saved its progress.
    """
    held = {each: tuple(sorted(indices)) for each, indices in cards.items()}
    (size,) = {len(indices) for indices in held.values()}
    return RunningClaim(
        uid=name,
        queue=queue,
        shape=GangShape(roles=(role(size, len(held), share=share),)),
        chip=chip,
        priority=priority,
        admitted_at=AT - since,
        replicas=tuple(
            ReplicaPlacement(
                role="trainer",
                index=index,
                node=each,
                cards=tuple(f"{each}/{place}" for place in indices),
                count=len(indices),
            )
            for index, (each, indices) in enumerate(held.items())
        ),
        preemptible=preemptible,
        checkpointed_at=None if saved is None else AT - saved,
        ends_at=None if ends_in is None else AT + ends_in,
        within=within,
    )


def snapshot(
    *nodes: NodeSnapshot,
    claims: Iterable[ClaimSnapshot] = (),
    running: Iterable[RunningClaim] = (),
    queues: Iterable[QueueSnapshot] = (RESEARCH,),
) -> SchedulingSnapshot:
    """What runs holds its cards, whatever the nodes were built with."""
    at_work = tuple(running)
    holders = {
        card: each.uid for each in at_work for replica in each.replicas for card in replica.cards
    }
    used: dict[str, Counter[str]] = defaultdict(Counter)
    shared: dict[str, Counter[str]] = defaultdict(Counter)
    for each in at_work:
        whole, part = divmod(each.amount, WHOLE_CARD)
        used[each.queue][each.chip] += whole
        shared[each.queue][each.chip] += part
    return SchedulingSnapshot(
        nodes=tuple(_held(each, holders) for each in nodes),
        claims=tuple(claims),
        queues={
            queue.uid: replace(queue, used=used[queue.uid], shared=shared[queue.uid])
            for queue in queues
        },
        running=at_work,
    )


def _held(view: NodeSnapshot, holders: Mapping[str, str]) -> NodeSnapshot:
    return replace(
        view,
        cards=tuple(
            replace(card, held_by=holders[card.uid]) if card.uid in holders else card
            for card in view.cards
        ),
    )


def free_cards(fleet: NodeTable, chip: str) -> int:
    """Whole cards of the chip that a claim could be given now."""
    free = fleet.free_whole_cards().tolist()
    return sum(
        count
        for row, count in zip(fleet.rows, free, strict=True)
        if row.chip == chip and row.node.accepts_workloads
    )
