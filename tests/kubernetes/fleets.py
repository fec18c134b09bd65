"""What a cluster reports, as the scheduler sees it, and what that decides, as a Launch: no database between."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.topology import network_domains
from controlplane.domain.quotas.claims import GangShape, RoleShape
from controlplane.domain.quotas.queues import QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import ClaimPlacement as Decision
from controlplane.domain.scheduling.plans import SchedulingPlan, SchedulingPolicy
from controlplane.domain.scheduling.snapshots import (
    CardSnapshot,
    ClaimSnapshot,
    NodeSnapshot,
    RunningClaim,
    SchedulingSnapshot,
)
from controlplane.ports.adapter_registry import geometries_on_node
from controlplane.ports.clusters import ClusterAdapter, ClusterUnavailable, ObservedNode
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
WITHIN = 120.0
QUEUE = QueueSnapshot(uid="research", name="research")


def view(node: ObservedNode, *, held: Mapping[str, str]) -> NodeSnapshot:
    """:param held: the claim that holds a card, by ``node/index``."""
    labels = node.labels or {}
    return NodeSnapshot(
        uid=node.name,
        name=node.name,
        cluster="crowd",
        cards=tuple(
            CardSnapshot(
                uid=f"{node.name}/{card.index}",
                index=card.index,
                chip=card.chip,
                state=CardState.USABLE if card.healthy and not card.taken else CardState.UNKNOWN,
                held_by=held.get(f"{node.name}/{card.index}"),
            )
            for card in node.cards
        ),
        capacity=node.capacity,
        schedulable=node.ready,
        geometries=geometries_on_node(labels, {card.chip for card in node.cards}),
        domains=network_domains(labels),
        labels=labels,
    )


def gang(name: str, *, chip: str, replicas: int, cards: int, within: str = "") -> ClaimSnapshot:
    role = RoleShape(name="trainer", replicas=replicas, cards=cards)
    return ClaimSnapshot(
        uid=name,
        queue=QUEUE.uid,
        shape=GangShape(roles=(role,)),
        chips=(chip,),
        priority=0,
        created_at=AT,
        within=within,
    )


def running(decision: Decision, claim: ClaimSnapshot) -> RunningClaim:
    """The claim, once it has what was decided for it."""
    return RunningClaim(
        uid=claim.uid,
        queue=claim.queue,
        shape=claim.shape,
        chip=decision.chip,
        priority=claim.priority,
        admitted_at=AT,
        replicas=decision.replicas,
    )


def decided(
    nodes: Iterable[ObservedNode], *claims: ClaimSnapshot, beside: Sequence[RunningClaim] = ()
) -> SchedulingPlan:
    """What the scheduler would do for the claims, in the order in which they are named.

    :param beside: claims that have their cards already.
    """
    held = {
        card: each.uid for each in beside for replica in each.replicas for card in replica.cards
    }
    snapshot = SchedulingSnapshot(
        nodes=tuple(view(node, held=held) for node in nodes),
        claims=claims,
        queues={QUEUE.uid: QUEUE},
        running=tuple(beside),
    )
    return plan_cycle(snapshot, SchedulingPolicy(), AT)


def launch_of(decision: Decision, *, name: str, labels: Mapping[str, str] | None = None) -> Launch:
    """Where the scheduler put it; what it runs is never run."""
    placements = tuple(
        LaunchPlacement(
            node=replica.node,
            cards=tuple(int(card.rpartition("/")[2]) for card in replica.cards),
        )
        for replica in sorted(decision.replicas, key=lambda each: each.index)
    )
    role = LaunchRole(name="trainer", argv=("train",), placements=placements)
    return Launch(name=name, roles=(role,), labels=labels or {"team": "research"})


def launched(cluster: ClusterAdapter, launch: Launch) -> None:
    """Asked for until it is there, as the product's loop does: a namespace takes a moment to be ready."""
    limit = time.monotonic() + WITHIN
    while True:
        try:
            cluster.launch(launch)
        except ClusterUnavailable:
            assert time.monotonic() < limit, f"{launch.name} was not taken within {WITHIN} s"
            time.sleep(0.1)
        else:
            return
