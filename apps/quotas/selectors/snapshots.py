"""What the scheduler sees of the rows, as values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, Q

from apps.fleet.models import Card, Node
from apps.quotas.models import Allocation, Claim, Nomination, Queue
from apps.quotas.models import Entitlement as Entitlements
from apps.quotas.selectors.claim_rows import live_claims
from apps.quotas.selectors.node_rows import nodes_now
from apps.quotas.selectors.shelves import server_started
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import ClaimState, GangShape
from controlplane.domain.network import domains_in
from controlplane.domain.queues import QueueState
from controlplane.domain.quotas import TOTAL, Entitlement
from controlplane.domain.resources import Bytes, Millicpu, Resources
from controlplane.domain.scheduling.snapshots import (
    Binding,
    CardView,
    ClaimView,
    NodeView,
    QueueView,
    RunningView,
    Snapshot,
)
from controlplane.ports.registry import geometries_on

HOLDING = (ClaimState.ADMITTED, ClaimState.REVOKING)

_PARENT = "parent__uid"


class QueueRow(NamedTuple):
    """The columns of one queue."""

    uid: str
    name: str
    state: str
    weight: float
    borrows: bool
    lends: bool
    reclaims: bool
    preempts: bool
    running_per_person: int | None
    retired_at: datetime | None
    #: Uid of the queue above.
    parent: str | None


_QUEUE_COLUMNS = (*QueueRow._fields[:-1], _PARENT)


def snapshot() -> Snapshot:
    """Everything the scheduler needs. Call it in one short transaction."""
    return snapshot_and_reasons()[0]


def snapshot_and_reasons() -> tuple[Snapshot, Mapping[str, str]]:
    """Everything the scheduler needs, and what each claim that waits was told last, by its uid.

    Call it in one short transaction. What this process read before and has not changed is not read again.
    """
    server = server_started()
    claims = live_claims(server=server)
    holders = {
        card: claim.uid
        for claim in claims.running
        for replica in claim.replicas
        for card in replica.cards
    }
    nodes = nodes_now(
        held=holders, kept=kept_cards(), promised=_promised(claims.running), server=server
    )
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for claim in claims.running:
        used[claim.queue][claim.chip] += sum(replica.count for replica in claim.replicas)
    live = used.keys() | {claim.queue for claim in claims.waiting}
    queues = {
        uid: replace(view, used=used[uid]) if uid in used else view
        for uid, view in _stated(Q(retired_at=None) | Q(uid__in=live)).items()
    }
    seen = Snapshot(nodes=nodes, claims=claims.waiting, queues=queues, running=claims.running)
    return seen, claims.told


def kept_cards() -> dict[str, str]:
    """For whom cards were freed, by uid of the card: the uid of a claim, or ``work:`` and that of its work."""
    rows = Nomination.objects.values_list("card__uid", "claim__uid", "work_uid")
    return {card: claim or f"work:{work}" for card, claim, work in rows}


def node_view(
    node: Node,
    cards: Iterable[Card],
    *,
    held: Mapping[str, str],
    kept: Mapping[str, str],
    promised: Resources | None = None,
) -> NodeView:
    """The node with those of its cards.

    :param held: the claim that holds a card, by its uid.
    :param kept: as of ``kept_cards``.
    """
    views = tuple(
        CardView(
            uid=card.uid,
            index=card.index,
            chip=card.chip,
            state=CardState(card.state),
            held_by=held.get(card.uid),
            nominated_for=kept.get(card.uid, ""),
        )
        for card in sorted(cards, key=lambda card: card.index)
    )
    return NodeView(
        uid=node.uid,
        name=node.name,
        cluster=node.cluster.uid,
        cards=views,
        capacity=Resources(cpu=Millicpu(node.cpu), memory=Bytes(node.memory)),
        promised=promised or Resources(),
        schedulable=node.ready and not node.cordoned,
        geometries=geometries_on(node.labels, {card.chip for card in views}),
        domains=domains_in(node.labels),
        labels=node.labels,
        binding=Binding(node.cluster.binding),
    )


def claim_view(claim: Claim) -> ClaimView:
    """What a claim asks for."""
    return ClaimView(
        uid=claim.uid,
        queue=claim.queue.uid,
        shape=GangShape.from_json(claim.shape),
        chips=tuple(claim.chips),
        priority=claim.priority,
        created_at=claim.in_line_since or claim.created_at,
        speeds=claim.speeds,
        selector=claim.where.get("selector", {}),
        tolerations=frozenset(claim.where.get("tolerations", ())),
        within=claim.where.get("within", ""),
        near=claim.where.get("near", ""),
        runtime=None if claim.runtime is None else timedelta(seconds=claim.runtime),
        person=claim.person.username if claim.person else "",
    )


def _promised(running: Sequence[RunningView]) -> Mapping[str, tuple[int, int]]:
    """CPU and memory that claims hold, by node uid."""
    promised: dict[str, tuple[int, int]] = {}
    for claim in running:
        limits = claim.shape.limits
        for replica in claim.replicas:
            cpu, memory = promised.get(replica.node, (0, 0))
            more = limits[replica.role]
            promised[replica.node] = cpu + more.cpu, memory + more.memory
    return promised


def queues_stated(*, locked: bool = False) -> Mapping[str, QueueView]:
    """Every queue, retired ones included, as if nobody held anything.

    :param locked: so that nobody changes them until the transaction ends.
    """
    return _stated(Q(), locked=locked)


def _stated(which: Q, *, locked: bool = False) -> dict[str, QueueView]:
    """Those queues as if nobody held anything, by uid."""
    rows = Queue.objects.filter(which).order_by("pk")
    if locked:
        rows = rows.select_for_update(no_key=True, of=("self",))
    found = list(rows.values_list("pk", *_QUEUE_COLUMNS))
    stated: dict[int, dict[str, Entitlement]] = defaultdict(dict)
    every = Entitlements.objects.order_by()
    for queue, chip, reserved, guaranteed, cap in every.values_list(
        "queue_id", "chip", "reserved", "guaranteed", "cap"
    ):
        stated[queue][chip] = Entitlement(reserved=reserved, guaranteed=guaranteed, cap=cap)
    return {row[1]: _queue_view(QueueRow._make(row[1:]), stated[row[0]], {}) for row in found}


def cards_used() -> Mapping[str, Mapping[str, int]]:
    """Cards that each queue's own claims hold, by its uid and the chip."""
    used: dict[str, dict[str, int]] = defaultdict(dict)
    held = Allocation.objects.filter(released_at=None).order_by()
    for queue, chip, cards in held.values_list("claim__queue__uid", "claim__chip").annotate(
        Count("id")
    ):
        used[queue][chip] = cards
    return used


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A claim that holds something, as far as its person is concerned."""

    queue: str
    person: str


def running_of(people: Collection[int]) -> tuple[Held, ...]:
    """Claims of those people that hold something."""
    rows = Claim.objects.filter(person__in=people, state__in=HOLDING)
    return tuple(
        Held(queue=queue, person=person)
        for queue, person in rows.values_list("queue__uid", "person__username")
    )


def queue_view(queue: Queue, used: Mapping[str, int]) -> QueueView:
    """The queue as the scheduler sees it, with what its own claims hold."""
    stated = {
        one.chip: Entitlement(reserved=one.reserved, guaranteed=one.guaranteed, cap=one.cap)
        for one in queue.entitlements.all()
    }
    parent = queue.parent.uid if queue.parent else None
    own = [getattr(queue, name) for name in _QUEUE_COLUMNS if name != _PARENT]
    return _queue_view(QueueRow._make([*own, parent]), stated, used)


def _queue_view(
    row: QueueRow, stated: Mapping[str, Entitlement], used: Mapping[str, int]
) -> QueueView:
    return QueueView(
        uid=row.uid,
        name=row.name,
        parent=row.parent,
        total=stated.get(TOTAL, Entitlement()),
        entitlements={chip: one for chip, one in stated.items() if chip != TOTAL},
        weight=row.weight,
        used=used,
        open=row.state != QueueState.CLOSED and row.retired_at is None,
        borrows=row.borrows,
        lends=row.lends,
        reclaims=row.reclaims,
        preempts=row.preempts,
        running_per_person=row.running_per_person,
    )
