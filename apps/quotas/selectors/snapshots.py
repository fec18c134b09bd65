"""The scheduler's snapshot: nodes, queues and claims as values, read incrementally from their rows."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple

from django.db.models import Count, Q

from apps.fleet.models import Card
from apps.quotas.models import Allocation, Claim, Queue
from apps.quotas.selectors.claim_snapshots import (
    ALLOCATED_STATES,
    NodeConstraints,
    PendingReasons,
    active_claims,
)
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.domain.common.topology import network_domains
from controlplane.domain.quotas.claims import GangShape
from controlplane.domain.quotas.queue_documents import SCHEDULED_FIELDS
from controlplane.domain.quotas.queues import TOTAL, ChipQuota, QueueSnapshot, QueueState
from controlplane.domain.scheduling.commit_validation import CommitClaim
from controlplane.domain.scheduling.snapshots import (
    CardSelection,
    CardSnapshot,
    ClaimSnapshot,
    NodeSnapshot,
    RunningClaim,
    SchedulingSnapshot,
)
from controlplane.persistence.row_versions import RowCache, database_server_identity, no_summary
from controlplane.persistence.transactions import fetch_rows
from controlplane.ports.adapter_registry import geometries_on_node


def scheduling_snapshot() -> SchedulingSnapshot:
    """The scheduler's snapshot. Call it in one short transaction."""
    return snapshot_and_pending_reasons()[0]


def snapshot_and_pending_reasons() -> tuple[SchedulingSnapshot, PendingReasons]:
    """The scheduler's snapshot, and the stored reasons of pending claims.

    Call it in one short transaction. Rows that this process has read before are read again only if they changed.
    """
    server = database_server_identity()
    claims = active_claims(server=server)
    holders = {
        card: claim.uid
        for claim in claims.running
        for replica in claim.replicas
        for card in replica.cards
    }
    nodes = cached_nodes(
        held=holders,
        nominated=nominated_cards(),
        allocated=_allocated_resources(claims.running),
        server=server,
    )
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for claim in claims.running:
        used[claim.queue][claim.chip] += sum(replica.count for replica in claim.replicas)
    in_use = used.keys() | {kind.queue for kind in claims.pending.by_kind}
    queues = {
        uid: replace(view, used=used[uid]) if uid in used else view
        for uid, (view, retired) in cached_queues(server=server).items()
        if not retired or uid in in_use
    }
    seen = SchedulingSnapshot(
        nodes=nodes, claims=claims.pending, queues=queues, running=claims.running
    )
    return seen, claims.reasons


def nominated_cards() -> dict[str, str]:
    """Beneficiaries of nominated cards by card uid: uid of a claim, or ``work:`` and uid of a workload."""
    # Scalar subqueries: a join may read all cards and all claims that ever existed.
    rows = fetch_rows(
        """
        SELECT (SELECT card.uid FROM fleet_card AS card WHERE card.id = kept.card_id),
               (SELECT claim.uid FROM quotas_claim AS claim WHERE claim.id = kept.claim_id),
               kept.work_uid
          FROM quotas_nomination AS kept
         ORDER BY kept.id
        """
    )
    return {card: claim or f"work:{work}" for card, claim, work in rows}


def claim_snapshot_of(claim: Claim) -> ClaimSnapshot:
    """The claim as the scheduler sees it."""
    return ClaimSnapshot(
        uid=claim.uid,
        queue=claim.queue.uid,
        shape=GangShape.from_json(claim.shape),
        chips=tuple(claim.chips),
        priority=claim.priority,
        created_at=claim.in_line_since or claim.created_at,
        speeds=claim.speeds,
        **NodeConstraints.from_json(claim.where)._asdict(),
        runtime=None if claim.runtime is None else timedelta(seconds=claim.runtime),
        user=claim.user.username if claim.user else "",
    )


def _allocated_resources(running: Sequence[RunningClaim]) -> Mapping[str, tuple[int, int]]:
    """CPU and memory allocated to claims, by node uid."""
    allocated: dict[str, tuple[int, int]] = {}
    for claim in running:
        limits = claim.shape.limits
        for replica in claim.replicas:
            cpu, memory = allocated.get(replica.node, (0, 0))
            more = limits[replica.role]
            allocated[replica.node] = cpu + more.cpu, memory + more.memory
    return allocated


def queues_without_usage() -> Mapping[str, QueueSnapshot]:
    """Every queue, including retired ones, without usage."""
    return {
        uid: queue.view for uid, queue in cached_queues(server=database_server_identity()).items()
    }


def lock_queue_snapshots(uids: Collection[str]) -> Mapping[str, QueueSnapshot]:
    """``queues_without_usage``; until the transaction ends no queue changes and nothing is admitted below the top.

    Changes of queues lock all of them, and admissions lock the top-level ones: these and the given ones suffice.
    """
    few = Queue.objects.filter(Q(parent=None) | Q(uid__in=uids)).order_by("pk")
    list(few.select_for_update(no_key=True, of=("self",)).values_list("pk"))
    return queues_without_usage()


def allocated_cards_by_queue() -> Mapping[str, Mapping[str, int]]:
    """Cards allocated to each queue's own claims, by queue uid and chip."""
    used: dict[str, dict[str, int]] = defaultdict(dict)
    # Filter claims as well, or all claims that ever existed are read.
    held = Allocation.objects.filter(released_at=None, claim__state__in=ALLOCATED_STATES).order_by()
    for queue, chip, cards in held.values_list("claim__queue__uid", "claim__chip").annotate(
        Count("id")
    ):
        used[queue][chip] = cards
    return used


def running_claims_of(users: Collection[int]) -> tuple[CommitClaim, ...]:
    """Running claims of those users."""
    rows = Claim.objects.filter(user__in=users, state__in=ALLOCATED_STATES)
    return tuple(
        CommitClaim(uid=uid, queue=queue, user=user)
        for uid, queue, user in rows.values_list("uid", "queue__uid", "user__username")
    )


class NodeRow(NamedTuple):
    pk: int
    uid: str
    name: str
    cluster: str
    binding: str
    cpu: int
    memory: int
    ready: bool
    cordoned: bool
    #: JSON; empty if not read.
    labels: str


class _NodeUsage(NamedTuple):
    """The part of a node that changes with every admission and release."""

    #: For each card: the claim that uses it, and the claim it is nominated for.
    held: tuple[str | None, ...]
    nominated: tuple[str, ...]
    allocated: tuple[int, int]


class _CachedNode(NamedTuple):
    uids: tuple[str, ...]
    #: The node without usage.
    idle: NodeSnapshot
    #: The node with its last usage.
    seen: dict[_NodeUsage, NodeSnapshot]


#: Cards are in a subquery per node: with a join, they may be aggregated again for each node while the database has
#: no statistics, as after a large cluster was registered.
_NODE_VERSIONS = """
    SELECT array_agg(node.id ORDER BY node.name, node.id),
           array_agg(concat_ws(' ', node.row_version, cluster.binding,
                               (SELECT count(*) || ' ' || sum(card.row_version)
                                  FROM fleet_card AS card WHERE card.node_id = node.id))
                     ORDER BY node.name, node.id)
      FROM fleet_node AS node
      JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id
     WHERE node.removed_at IS NULL
"""
_NODE_ROWS = """
    SELECT node.id, node.uid, node.name, cluster.uid, cluster.binding, node.cpu, node.memory,
           node.ready, node.cordoned, node.labels::text
      FROM fleet_node AS node JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id
     WHERE node.id = ANY(%s)
"""


def cached_nodes(
    *,
    held: Mapping[str, str],
    nominated: Mapping[str, str],
    allocated: Mapping[str, tuple[int, int]],
    server: object,
) -> tuple[NodeSnapshot, ...]:
    """Every node with its cards, by name; reads only nodes that changed since the last call.

    :param held: uid of the claim that uses a card, by card uid.
    :param nominated: beneficiary of a nominated card, by card uid.
    :param allocated: allocated CPU and memory by node uid.
    :param server: see ``database_server_identity``.
    """
    return tuple(
        [
            _node_in_use(host, held, nominated, allocated.get(host.idle.uid, (0, 0)))
            for host in _NODE_CACHE.refresh(server=server).values.values()
        ]
    )


def _read_nodes(keys: Collection[int]) -> Mapping[int, _CachedNode]:
    cards: dict[int, list[CardSnapshot]] = {}
    rows = Card.objects.filter(node__in=keys).order_by("node", "index")
    found = list(rows.values_list("node_id", "id", "parent_id", "uid", "index", "chip", "state"))
    # A card is allocated whole or in slices, never both.
    divided = {parent for _, _, parent, *_, state in found if state != CardState.UNKNOWN}
    for node_id, pk, _, uid, index, chip, state in found:
        if pk not in divided:
            view = CardSnapshot(uid=uid, index=index, chip=chip, state=CardState(state))
            cards.setdefault(node_id, []).append(view)
    nodes = [NodeRow(*row) for row in fetch_rows(_NODE_ROWS, [list(keys)])]
    hosts = {}
    for node in nodes:
        idle = _node_snapshot_without_usage(node, tuple(cards.get(node.pk, ())))
        hosts[node.pk] = _CachedNode(tuple(card.uid for card in idle.cards), idle, {})
    return hosts


_NODE_CACHE: RowCache[_CachedNode, None] = RowCache(_NODE_VERSIONS, _read_nodes, no_summary)


def _node_snapshot_without_usage(node: NodeRow, cards: tuple[CardSnapshot, ...]) -> NodeSnapshot:
    """The node with those cards, in index order."""
    labels = _parsed_labels(node.labels)
    return NodeSnapshot(
        uid=node.uid,
        name=node.name,
        cluster=node.cluster,
        cards=cards,
        capacity=Resources(cpu=Millicpu(node.cpu), memory=Bytes(node.memory)),
        schedulable=node.ready and not node.cordoned,
        geometries=geometries_on_node(labels, {card.chip for card in cards}),
        domains=network_domains(labels),
        labels=labels,
        binding=CardSelection(node.binding),
    )


def _node_in_use(
    host: _CachedNode,
    held: Mapping[str, str],
    nominated: Mapping[str, str],
    allocated: tuple[int, int],
) -> NodeSnapshot:
    holders = tuple(map(held.get, host.uids))
    nominees = tuple(nominated.get(uid, "") for uid in host.uids) if nominated else ()
    usage = _NodeUsage(holders, nominees if any(nominees) else (), allocated)
    view = host.seen.get(usage)
    if view is None:
        host.seen.clear()
        view = host.seen[usage] = _node_snapshot_with_usage(host.idle, usage)
    return view


def _node_snapshot_with_usage(idle: NodeSnapshot, usage: _NodeUsage) -> NodeSnapshot:
    nominees = usage.nominated or ("",) * len(idle.cards)
    cards = tuple(
        card
        if holder is None and not nominee
        else replace(card, held_by=holder, nominated_for=nominee)
        for card, holder, nominee in zip(idle.cards, usage.held, nominees, strict=True)
    )
    cpu, memory = usage.allocated
    allocated = Resources(cpu=Millicpu(cpu), memory=Bytes(memory))
    return replace(idle, cards=cards, allocated=allocated)


@lru_cache(maxsize=4096)
def _parsed_labels(text: str) -> Mapping[str, str]:
    value: Mapping[str, str] = json.loads(text)
    return value


#: A queue's uid never changes, so the parent's uid depends only on the queue's own row.
_QUEUE_VERSIONS = """
    SELECT array_agg(queue.id ORDER BY queue.id),
           array_agg(queue.row_version || coalesce(' ' || quota.versions, '') ORDER BY queue.id)
      FROM quotas_queue AS queue
      LEFT JOIN (SELECT queue_id, count(*) || ' ' || sum(row_version) AS versions
                   FROM quotas_entitlement GROUP BY queue_id) AS quota ON quota.queue_id = queue.id
"""


class CachedQueue(NamedTuple):
    """A queue without usage."""

    view: QueueSnapshot
    retired: bool


def cached_queues(*, server: object) -> Mapping[str, CachedQueue]:
    """Every queue by uid, including retired ones, in order of creation.

    :param server: see ``database_server_identity``.
    """
    cached = _QUEUE_CACHE.refresh(server=server)
    return {configured.view.uid: configured for configured in cached.values.values()}


def queue_snapshot_of(queue: Queue, used: Mapping[str, int]) -> QueueSnapshot:
    """The queue as the scheduler sees it, with the usage of its own claims."""
    configured = {one.chip: one.quota for one in queue.entitlements.all()}
    return QueueSnapshot(
        uid=queue.uid,
        name=queue.name,
        parent=queue.parent.uid if queue.parent else None,
        total=configured.pop(TOTAL, ChipQuota()),
        entitlements=configured,
        used=used,
        open=queue.state != QueueState.CLOSED and queue.retired_at is None,
        **{name: getattr(queue, name) for name in SCHEDULED_FIELDS},
    )


def _read_queues(keys: Collection[int]) -> Mapping[int, CachedQueue]:
    rows = Queue.objects.filter(pk__in=keys).select_related("parent")
    return {
        queue.pk: CachedQueue(queue_snapshot_of(queue, {}), queue.retired_at is not None)
        for queue in rows.prefetch_related("entitlements").order_by()
    }


_QUEUE_CACHE: RowCache[CachedQueue, None] = RowCache(_QUEUE_VERSIONS, _read_queues, no_summary)
