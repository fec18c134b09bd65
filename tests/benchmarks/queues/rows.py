"""A snapshot as the rows that the product would read it from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from django.db import transaction

from apps.accounts.models import Team
from apps.fleet.models import Card, Cluster, Node
from apps.quotas.models import Allocation, Claim, Entitlement, Queue
from controlplane.domain.common.topology import network_labels
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.quotas.queues import TOTAL, QueueSnapshot
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, RunningClaim, SchedulingSnapshot

#: Rows of one statement.
BATCH = 2000


@transaction.atomic
def record(snapshot: SchedulingSnapshot, *, at: datetime) -> Team:
    """Write it into an empty database, every claim for one team, which comes back."""
    team = Team.objects.create(name="Company", slug="company")
    _fleet(snapshot, at=at)
    queues = _queues(snapshot.queues)
    waiting = (_waiting(view, team=team, queue=queues[view.queue]) for view in snapshot.claims)
    Claim.objects.bulk_create(waiting, BATCH)
    _running(snapshot, team=team, queues=queues)
    return team


@transaction.atomic
def waiting_again(views: Sequence[ClaimSnapshot]) -> None:
    """More that wait, in queues that are there."""
    queues = {queue.uid: queue for queue in Queue.objects.select_related("team")}
    team = Team.objects.get()
    Claim.objects.bulk_create(
        (_waiting(view, team=team, queue=queues[view.queue]) for view in views), BATCH
    )


def _fleet(snapshot: SchedulingSnapshot, *, at: datetime) -> None:
    cluster = Cluster.objects.create(name="company", kind="simulated", last_seen_at=at)
    nodes = Node.objects.bulk_create(
        (
            Node(
                uid=view.uid,
                cluster=cluster,
                name=view.name,
                cpu=view.capacity.cpu,
                memory=view.capacity.memory,
                labels={**view.labels, **network_labels(view.domains)},
                last_seen_at=at,
            )
            for view in snapshot.nodes
        ),
        BATCH,
    )
    Card.objects.bulk_create(
        (
            Card(uid=card.uid, node=node, index=card.index, chip=card.chip, state=card.state)
            for node, view in zip(nodes, snapshot.nodes, strict=True)
            for card in view.cards
        ),
        BATCH,
    )


def _queues(views: Mapping[str, QueueSnapshot]) -> Mapping[str, Queue]:
    """By uid. Those above come before those below."""
    queues: dict[str, Queue] = {}
    left = dict(views)
    while left:
        ready = [view for view in left.values() if view.parent is None or view.parent in queues]
        rows = Queue.objects.bulk_create(
            Queue(
                uid=view.uid,
                name=view.name,
                parent=queues[view.parent] if view.parent else None,
                weight=view.weight,
                borrows=view.borrows,
                lends=view.lends,
                reclaims=view.reclaims,
                preempts=view.preempts,
            )
            for view in ready
        )
        for row in rows:
            queues[row.uid] = row
            del left[row.uid]
    Entitlement.objects.bulk_create(
        Entitlement(
            queue=queues[view.uid],
            chip=chip,
            reserved=stated.reserved,
            guaranteed=stated.guaranteed,
            cap=stated.cap,
        )
        for view in views.values()
        for chip, stated in ({**view.entitlements, TOTAL: view.total}).items()
    )
    return queues


def _waiting(view: ClaimSnapshot, *, team: Team, queue: Queue) -> Claim:
    where = {"within": view.within, "near": view.near}
    return Claim(
        uid=view.uid,
        team=team,
        queue=queue,
        owner_kind="load",
        owner_uid=view.uid,
        shape=view.shape.as_json(),
        card_count=view.shape.cards,
        chips=list(view.chips),
        priority=view.priority,
        where={level: value for level, value in where.items() if value},
        runtime=None if view.runtime is None else round(view.runtime.total_seconds()),
        in_line_since=view.created_at,
        preemptible=True,
    )


def _running(snapshot: SchedulingSnapshot, *, team: Team, queues: Mapping[str, Queue]) -> None:
    cards = {card.uid: card for card in Card.objects.select_related("node")}
    indices = {uid: card.index for uid, card in cards.items()}
    claims = Claim.objects.bulk_create(
        (
            _admitted(view, indices, team=team, queue=queues[view.queue])
            for view in snapshot.running
        ),
        BATCH,
    )
    Allocation.objects.bulk_create(
        (
            each
            for claim, view in zip(claims, snapshot.running, strict=True)
            for each in _allocations(claim, view, cards)
        ),
        BATCH,
    )


def _admitted(view: RunningClaim, indices: Mapping[str, int], *, team: Team, queue: Queue) -> Claim:
    return Claim(
        uid=view.uid,
        state=ClaimState.ADMITTED,
        team=team,
        queue=queue,
        owner_kind="load",
        owner_uid=view.uid,
        shape=view.shape.as_json(),
        card_count=view.shape.cards,
        chips=list(view.chips or (view.chip,)),
        priority=view.priority,
        chip=view.chip,
        placement=[
            {
                "role": replica.role,
                "index": replica.index,
                "node": replica.node,
                "cards": [indices[uid] for uid in replica.cards],
            }
            for replica in view.replicas
        ],
        runtime=round((view.ends_at - view.admitted_at).total_seconds()) if view.ends_at else None,
        admitted_at=view.admitted_at,
        metered_until=view.admitted_at,
        checkpointed_at=view.checkpointed_at,
        preemptible=view.preemptible,
    )


def _allocations(
    claim: Claim, view: RunningClaim, cards: Mapping[str, Card]
) -> Iterator[Allocation]:
    for replica in view.replicas:
        for uid in replica.cards:
            yield Allocation(
                claim=claim,
                card=cards[uid],
                node=cards[uid].node,
                role=replica.role,
                replica=replica.index,
                allocated_at=view.admitted_at,
            )
