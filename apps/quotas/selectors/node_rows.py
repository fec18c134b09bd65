"""Nodes with their cards, as the scheduler sees them, read straight from their rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from django.db import connection

from apps.fleet.models import Card
from apps.quotas.selectors.shelves import Shelf, marks_now
from controlplane.domain.accelerators import CardState
from controlplane.domain.network import domains_in
from controlplane.domain.resources import Bytes, Millicpu, Resources
from controlplane.domain.scheduling.snapshots import Binding, CardView, NodeView
from controlplane.ports.registry import geometries_on


class NodeRow(NamedTuple):
    """The columns of one node."""

    pk: int
    uid: str
    name: str
    cluster: str
    binding: str
    cpu: int
    memory: int
    ready: bool
    cordoned: bool
    #: JSON; empty where they were not asked for.
    labels: str


class _Marks(NamedTuple):
    """What changes with every claim that comes and goes."""

    #: Of each card: the claim that holds it, and the one it was freed for.
    held: tuple[str | None, ...]
    kept: tuple[str, ...]
    promised: tuple[int, int]


class _Host(NamedTuple):
    """A node between two snapshots."""

    uids: tuple[str, ...]
    #: As if nobody held anything.
    bare: NodeView
    #: The same as it was seen last.
    seen: dict[_Marks, NodeView]


#: A node's row is written whenever it is seen: what is read of it says more than its version. Cards are looked
#: for node by node: joined, they may be summed up anew for each node where the database has no statistics yet, as
#: after a large cluster was registered.
_MARKS = """
    SELECT string_agg(node.id || '(' || md5(row(
               node.uid, node.name, cluster.uid, cluster.binding, node.cpu, node.memory, node.ready,
               node.cordoned, node.labels,
               (SELECT string_agg(card.ctid::text || card.xmin::text, '' ORDER BY card.id)
                  FROM fleet_card AS card WHERE card.node_id = node.id))::text), ' ' ORDER BY node.name, node.id)
      FROM fleet_node AS node
      JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id
     WHERE node.removed_at IS NULL
"""
_ROWS = """
    SELECT node.id, node.uid, node.name, cluster.uid, cluster.binding, node.cpu, node.memory,
           node.ready, node.cordoned, node.labels::text
      FROM fleet_node AS node JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id
     WHERE node.id = ANY(%s)
"""


def nodes_now(
    *,
    held: Mapping[str, str],
    kept: Mapping[str, str],
    promised: Mapping[str, tuple[int, int]],
    server: object,
) -> tuple[NodeView, ...]:
    """Every node with its cards, by name; what changed since the last time is read.

    :param held: the claim that holds a card, by its uid.
    :param kept: whom a card was freed for, by its uid.
    :param promised: CPU and memory that claims hold of a node, by its uid.
    :param server: as ``shelves.server_started`` says.
    """
    return tuple(
        [
            _marked(host, held, kept, promised.get(host.bare.uid, (0, 0)))
            for host in _SHELF.values(marks_now(_MARKS), server=server)
        ]
    )


def _read(keys: Collection[int]) -> Mapping[int, _Host]:
    cards: dict[int, list[CardView]] = {}
    rows = Card.objects.filter(node__in=keys).order_by("node", "index")
    found = list(rows.values_list("node_id", "id", "parent_id", "uid", "index", "chip", "state"))
    # A card is given out whole or in slices, never both.
    divided = {parent for _, _, parent, *_, state in found if state != CardState.UNKNOWN}
    for node_id, pk, _, uid, index, chip, state in found:
        if pk not in divided:
            view = CardView(uid=uid, index=index, chip=chip, state=CardState(state))
            cards.setdefault(node_id, []).append(view)
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, [list(keys)])
        nodes = [NodeRow(*row) for row in cursor.fetchall()]
    hosts = {}
    for node in nodes:
        bare = _bare(node, tuple(cards.get(node.pk, ())))
        hosts[node.pk] = _Host(tuple(card.uid for card in bare.cards), bare, {})
    return hosts


_SHELF: Shelf[_Host] = Shelf(_read)


def _bare(node: NodeRow, cards: tuple[CardView, ...]) -> NodeView:
    """The node with those cards, in index order."""
    labels = _labels(node.labels)
    return NodeView(
        uid=node.uid,
        name=node.name,
        cluster=node.cluster,
        cards=cards,
        capacity=Resources(cpu=Millicpu(node.cpu), memory=Bytes(node.memory)),
        schedulable=node.ready and not node.cordoned,
        geometries=geometries_on(labels, {card.chip for card in cards}),
        domains=domains_in(labels),
        labels=labels,
        binding=Binding(node.binding),
    )


def _marked(
    host: _Host, held: Mapping[str, str], kept: Mapping[str, str], promised: tuple[int, int]
) -> NodeView:
    holders = tuple(map(held.get, host.uids))
    heirs = tuple(kept.get(uid, "") for uid in host.uids) if kept else ()
    marks = _Marks(holders, heirs if any(heirs) else (), promised)
    view = host.seen.get(marks)
    if view is None:
        host.seen.clear()
        view = host.seen[marks] = _marked_anew(host.bare, marks)
    return view


def _marked_anew(bare: NodeView, marks: _Marks) -> NodeView:
    heirs = marks.kept or ("",) * len(bare.cards)
    cards = tuple(
        card if holder is None and not heir else replace(card, held_by=holder, nominated_for=heir)
        for card, holder, heir in zip(bare.cards, marks.held, heirs, strict=True)
    )
    cpu, memory = marks.promised
    promised = Resources(cpu=Millicpu(cpu), memory=Bytes(memory))
    return replace(bare, cards=cards, promised=promised)


@lru_cache(maxsize=4096)
def _labels(text: str) -> Mapping[str, str]:
    value: Mapping[str, str] = json.loads(text)
    return value
