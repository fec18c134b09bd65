"""What the scheduler sees of the rows, as values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.db import connection
from django.db.models import Count, Q

from apps.quotas.models import Allocation, Claim, Queue
from apps.quotas.selectors.claim_rows import Told, live_claims
from apps.quotas.selectors.node_rows import nodes_now
from apps.quotas.selectors.queue_rows import stated_queues
from apps.quotas.selectors.shelves import server_started
from controlplane.domain.claims import ClaimState, GangShape
from controlplane.domain.scheduling.snapshots import (
    ClaimView,
    QueueView,
    RunningView,
    Snapshot,
)

HOLDING = (ClaimState.ADMITTED, ClaimState.REVOKING)


def snapshot() -> Snapshot:
    """Everything the scheduler needs. Call it in one short transaction."""
    return snapshot_and_reasons()[0]


def snapshot_and_reasons() -> tuple[Snapshot, Told]:
    """Everything the scheduler needs, and what each claim that waits was told last.

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
    live = used.keys() | {kind.queue for kind in claims.waiting.by_kind}
    queues = {
        uid: replace(view, used=used[uid]) if uid in used else view
        for uid, (view, retired) in stated_queues(server=server).items()
        if not retired or uid in live
    }
    seen = Snapshot(nodes=nodes, claims=claims.waiting, queues=queues, running=claims.running)
    return seen, claims.told


def kept_cards() -> dict[str, str]:
    """For whom cards were freed, by uid of the card: the uid of a claim, or ``work:`` and that of its work."""
    with connection.cursor() as cursor:
        # Looked for one by one: joined, all cards and all claims that ever were are read for a few.
        cursor.execute(
            """
            SELECT (SELECT card.uid FROM fleet_card AS card WHERE card.id = kept.card_id),
                   (SELECT claim.uid FROM quotas_claim AS claim WHERE claim.id = kept.claim_id),
                   kept.work_uid
              FROM quotas_nomination AS kept
             ORDER BY kept.id
            """
        )
        return {card: claim or f"work:{work}" for card, claim, work in cursor.fetchall()}


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
        equal_chips=claim.where.get("equal_chips", 1),
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


def queues_stated() -> Mapping[str, QueueView]:
    """Every queue, retired ones included, as if nobody held anything."""
    return {uid: queue.view for uid, queue in stated_queues(server=server_started()).items()}


def queues_locked(uids: Collection[str]) -> Mapping[str, QueueView]:
    """``queues_stated``, and until the transaction ends no queue is changed, and nothing admitted below the same.

    Whoever changes queues locks all of them, and whoever admits locks those at the top: those and the named ones
    stand for all.
    """
    few = Queue.objects.filter(Q(parent=None) | Q(uid__in=uids)).order_by("pk")
    list(few.select_for_update(no_key=True, of=("self",)).values_list("pk"))
    return queues_stated()


def cards_used() -> Mapping[str, Mapping[str, int]]:
    """Cards that each queue's own claims hold, by its uid and the chip."""
    used: dict[str, dict[str, int]] = defaultdict(dict)
    # Said of the claims as well, or all that ever were are read for the few that hold something.
    held = Allocation.objects.filter(released_at=None, claim__state__in=HOLDING).order_by()
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
