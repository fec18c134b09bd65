"""Free capacity and fragmentation of the fleet, for tens of thousands of cards in one request.

The database aggregates the cards of a node to a string of letters. A fleet has few different strings, so fragments
are computed once for each of them, with the scheduler's own measure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from django.db.models import Count

from apps.fleet.models import Node
from apps.quotas.models import Claim
from apps.quotas.selectors.claim_snapshots import ALLOCATED_STATES
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import Bytes, Resources
from controlplane.domain.common.topology import Geometry, network_domains
from controlplane.domain.quotas.claims import ClaimState, GangShape
from controlplane.domain.scheduling.fragmentation import NodeFreeCapacity, node_free_capacities
from controlplane.domain.scheduling.snapshots import (
    CardSelection,
    CardSnapshot,
    NodeSnapshot,
    ReplicaShape,
    SchedulingSnapshot,
)
from controlplane.domain.scheduling.typical_requests import TypicalRequest, most_frequent
from controlplane.persistence.transactions import fetch_rows
from controlplane.ports.adapter_registry import geometries_on_node


class CardUse(StrEnum):
    """Use of a card as a letter: the first that applies."""

    BROKEN = "b"
    HELD = "h"
    NO_NEW_WORK = "n"
    #: Free, but reserved.
    RESERVED = "k"
    #: Free, but unusable for most requests.
    FRAGMENT = "g"
    FREE = "f"


class NodeOccupancy(NamedTuple):
    """A node and the use of its cards. Sequences have an entry per card, in index order."""

    uid: str
    name: str
    cluster: str
    #: Network domains, outermost level first.
    domains: Mapping[str, str]
    accepts_workloads: bool
    indices: tuple[int, ...]
    chips: Sequence[str]
    #: A ``CardUse`` for each card.
    uses: str
    #: Primary keys of the claims that use them; 0 for none.
    claims: Sequence[int]
    geometries: tuple[Geometry, ...]
    opening: NodeFreeCapacity


class FleetFragmentation(NamedTuple):
    #: Idle nodes.
    whole: int
    #: Fragmented cards.
    fragments: float


class _NodeCards(NamedTuple):
    """Everything that determines the free capacity of a node."""

    chips: str
    indices: str
    #: Of each card: ``i`` isolated, ``u`` unknown, ``m`` in use and cordoned, and as ``CardUse``.
    letters: str
    schedulable: bool
    binding: str
    geometries: tuple[tuple[str, Geometry], ...]
    #: Unallocated bytes.
    memory: int


class _NodeRow(NamedTuple):
    pk: int
    uid: str
    name: str
    cluster: str
    binding: str
    ready: bool
    cordoned: bool
    labels: dict[str, str]
    memory: int


#: Cards by node, in index order.
_NODE_CARDS = """
    SELECT card.node_id,
           string_agg(card.index::text, ',' ORDER BY card.index),
           string_agg(card.chip, ',' ORDER BY card.index),
           string_agg(CASE WHEN card.state = 'isolated' THEN 'i'
                           WHEN card.state = 'unknown' THEN 'u'
                           WHEN held.id IS NOT NULL AND card.state = 'no_new_work' THEN 'm'
                           WHEN held.id IS NOT NULL THEN 'h'
                           WHEN card.state = 'no_new_work' THEN 'n'
                           WHEN kept.id IS NOT NULL THEN 'k'
                           ELSE 'f' END, '' ORDER BY card.index),
           string_agg(coalesce(held.claim_id, 0)::text, ',' ORDER BY card.index)
      FROM fleet_card AS card
      LEFT JOIN quotas_allocation AS held ON held.card_id = card.id AND held.released_at IS NULL
      LEFT JOIN quotas_nomination AS kept ON kept.card_id = card.id
     WHERE card.parent_id IS NULL
     GROUP BY card.node_id
"""

#: Allocated bytes of memory by node uid.
_ALLOCATED_MEMORY = """
    SELECT place->>'node', sum((role->>'memory')::bigint)
      FROM quotas_claim AS claim,
           jsonb_array_elements(claim.placement) AS place,
           jsonb_array_elements(claim.shape) AS role
     WHERE claim.state = ANY(%s) AND role->>'name' = place->>'role'
     GROUP BY 1
"""

_STATES = {"i": CardState.ISOLATED, "u": CardState.UNKNOWN, "m": CardState.NO_NEW_WORK}
_STATES["n"] = CardState.NO_NEW_WORK
#: Maps internal letters to ``CardUse``.
_SHOWN = str.maketrans("ium", "bbh")


def fleet_fragmentation() -> FleetFragmentation:
    occupancies = fleet_node_occupancies()
    return FleetFragmentation(
        whole=sum(occupancy.opening.whole for occupancy in occupancies),
        fragments=sum(occupancy.opening.fragments for occupancy in occupancies),
    )


def fleet_node_occupancies() -> Sequence[NodeOccupancy]:
    """Every node with cards, ordered by cluster, network domain and name."""
    typical = typical_requests()
    allocated = _memory_of_allocations() if any(one.shape.memory for one in typical) else None
    cards = {row[0]: row[1:] for row in fetch_rows(_NODE_CARDS)}
    rows = [row for row in _node_rows() if row.pk in cards]
    rows.sort(
        key=lambda row: (row.cluster, *topology_sort_key(row.labels), natural_sort_key(row.name))
    )
    layouts = [_node_cards(row, *cards[row.pk][:3], allocated=allocated) for row in rows]
    distinct = tuple(dict.fromkeys(layouts))
    views = tuple(_node_snapshot(str(number), layout) for number, layout in enumerate(distinct))
    found = node_free_capacities(SchedulingSnapshot(nodes=views, claims=(), queues={}), typical)
    known = {
        layout: (view, opening, _displayed_uses(layout, view, opening))
        for layout, view, opening in zip(distinct, views, found, strict=True)
    }
    return [
        _node_occupancy(row, layout, cards[row.pk][3], known[layout])
        for row, layout in zip(rows, layouts, strict=True)
    ]


def typical_requests() -> tuple[TypicalRequest, ...]:
    """The most frequent requests of pending and running claims per node; counted by the database."""
    counted: Counter[tuple[ReplicaShape, frozenset[str]]] = Counter()
    for state, shape, chips, chip, times in (
        Claim.objects.filter(state__in=(ClaimState.PENDING, *ALLOCATED_STATES))
        .order_by()
        .values_list("state", "shape", "chips", "chip")
        .annotate(times=Count("id"))
    ):
        suits = frozenset(chips if state == ClaimState.PENDING else (chip,))
        for role in GangShape.from_json(shape).roles:
            if role.cards:
                counted[ReplicaShape.of(role), suits] += role.replicas * times
    return most_frequent(counted)


def natural_sort_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key by which ``leaf-10`` comes after ``leaf-9``."""
    parts = [""]
    for letter in name:
        if parts[-1] and parts[-1][-1].isdecimal() != letter.isdecimal():
            parts.append("")
        parts[-1] += letter
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def topology_sort_key(labels: Mapping[str, str]) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    """A sort key by the network domains of a node, the outermost first."""
    return tuple(natural_sort_key(name) for name in network_domains(labels).values())


def _node_rows() -> list[_NodeRow]:
    rows = Node.objects.order_by().values_list(
        "pk",
        "uid",
        "name",
        "cluster__name",
        "cluster__binding",
        "ready",
        "cordoned",
        "labels",
        "memory",
    )
    return [_NodeRow(*row) for row in rows]


def _memory_of_allocations() -> Mapping[str, int]:
    rows = fetch_rows(_ALLOCATED_MEMORY, [[state.value for state in ALLOCATED_STATES]])
    return {node: int(amount) for node, amount in rows}


def _node_cards(
    row: _NodeRow, indices: str, chips: str, letters: str, *, allocated: Mapping[str, int] | None
) -> _NodeCards:
    geometries = geometries_on_node(row.labels, set(chips.split(",")))
    return _NodeCards(
        chips=chips,
        indices=indices,
        letters=letters,
        schedulable=row.ready and not row.cordoned,
        binding=row.binding,
        geometries=tuple(sorted(geometries.items(), key=lambda item: item[0])),
        # Irrelevant if no request has a memory limit.
        memory=0 if allocated is None else row.memory - allocated.get(row.uid, 0),
    )


def _node_snapshot(uid: str, layout: _NodeCards) -> NodeSnapshot:
    chips = layout.chips.split(",")
    return NodeSnapshot(
        uid=uid,
        name=uid,
        cluster="",
        cards=tuple(
            CardSnapshot(
                uid=f"{uid}/{index}",
                index=int(index),
                chip=chip,
                state=_STATES.get(letter, CardState.USABLE),
                held_by="somebody" if letter in "hm" else None,
                nominated_for="somebody" if letter == "k" else "",
            )
            for index, chip, letter in zip(
                layout.indices.split(","), chips, layout.letters, strict=True
            )
        ),
        capacity=Resources(memory=Bytes(max(0, layout.memory))),
        schedulable=layout.schedulable,
        geometries=dict(layout.geometries),
        binding=CardSelection(layout.binding),
    )


def _displayed_uses(layout: _NodeCards, view: NodeSnapshot, opening: NodeFreeCapacity) -> str:
    """Uses as displayed: with cordoned nodes and fragments."""
    shown = layout.letters.translate(_SHOWN)
    if not view.accepts_workloads:
        return shown.replace(CardUse.FREE, CardUse.NO_NEW_WORK).replace(
            CardUse.RESERVED, CardUse.NO_NEW_WORK
        )
    if not opening.broken_up:
        return shown
    return "".join(
        CardUse.FRAGMENT.value if use == CardUse.FREE and card.chip in opening.broken_up else use
        for use, card in zip(shown, view.cards, strict=True)
    )


def _node_occupancy(
    row: _NodeRow,
    layout: _NodeCards,
    claims: str,
    known: tuple[NodeSnapshot, NodeFreeCapacity, str],
) -> NodeOccupancy:
    view, opening, uses = known
    return NodeOccupancy(
        uid=row.uid,
        name=row.name,
        cluster=row.cluster,
        domains=network_domains(row.labels),
        accepts_workloads=view.accepts_workloads,
        indices=tuple(card.index for card in view.cards),
        chips=layout.chips.split(","),
        uses=uses,
        claims=tuple(map(int, claims.split(","))),
        geometries=tuple(geometry for _, geometry in layout.geometries),
        opening=opening,
    )
