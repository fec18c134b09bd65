"""The latest metrics of every card as a document for the fleet map.

The database formats the metrics of a node as one line of text in the form in which they are sent: tens of
thousands of cards cost one statement and one pass over their nodes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Self

from apps.quotas.selectors.free_capacity import natural_sort_key, topology_sort_key
from apps.quotas.selectors.topology import (
    FLEET,
    NODE,
    NetworkDomain,
    add_node,
    card_group_starts,
    encode_domains,
    encode_run_lengths,
    number_domains,
)
from apps.telemetry.selectors import FRESH
from controlplane.domain.common.topology import network_domains
from controlplane.persistence.transactions import fetch_row, fetch_rows
from controlplane.ports.adapter_registry import geometries_on_node


class HeatMapMetric(StrEnum):
    """A metric for colouring cards, in the order in which metrics are sent."""

    #: Percent.
    UTILIZATION = "utilization"
    #: Percent of the card's memory.
    MEMORY = "memory"
    #: Degrees Celsius.
    TEMPERATURE = "temperature"
    #: Watts.
    POWER = "power"
    #: Errors that could not be corrected, since the card was last reset.
    ECC = "ecc"


class FleetMapCardStatus(StrEnum):
    """What matters most about a card, in one letter: the first that holds."""

    ISOLATED = "i"
    UNKNOWN = "u"
    HELD = "h"
    NO_NEW_WORK = "n"
    FREE = "f"


class FleetMapNode(NamedTuple):
    """A node; texts have an entry for each card, in index order, numbers separated by commas."""

    name: str
    cluster: str
    labels: Mapping[str, str]
    indices: str
    chips: str
    #: A ``Use`` for each card.
    uses: str
    #: Seconds since the card was measured, and metrics in the order of ``HeatMapMetric``; ``null``: not
    #: measured.
    ages: str
    heat_values: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{NODE}:{self.cluster}/{self.name}"


@dataclass(slots=True, kw_only=True)
class FleetMapPart(NetworkDomain):
    """A domain with its cards by ``FleetMapCardStatus`` and the values of one metric."""

    node: FleetMapNode | None = None
    #: Cards that were measured lately, and the sum and the highest of their values.
    measured: int = 0
    total: float = 0.0
    highest: float | None = None

    @property
    def mean(self) -> float | None:
        """Of the cards that were measured lately; None where none was."""
        return self.total / self.measured if self.measured else None

    def add_totals(self, domain: Self) -> None:
        self.measured += domain.measured
        self.total += domain.total
        if domain.highest is not None:
            self.highest = max(domain.highest, self.highest or domain.highest)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMapScope:
    """Only these cards; empty: all."""

    chip: str = ""
    cluster: str = ""


#: Metrics are in the order of ``HeatMapMetric``.
_NODES = """
    SELECT node.name, cluster.name, node.labels,
           string_agg(card.index::text, ',' ORDER BY card.index),
           string_agg(card.chip, ',' ORDER BY card.index),
           string_agg(CASE WHEN card.state = 'isolated' THEN 'i'
                           WHEN card.state = 'unknown' THEN 'u'
                           WHEN held.id IS NOT NULL THEN 'h'
                           WHEN card.state = 'no_new_work' OR node.cordoned OR NOT node.ready THEN 'n'
                           ELSE 'f' END, '' ORDER BY card.index),
           string_agg(coalesce(measured.age::text, 'null'), ',' ORDER BY card.index),
           string_agg(coalesce(measured.utilization::text, 'null'), ',' ORDER BY card.index),
           string_agg(coalesce(measured.memory::text, 'null'), ',' ORDER BY card.index),
           string_agg(coalesce(measured.temperature::text, 'null'), ',' ORDER BY card.index),
           string_agg(coalesce(measured.power::text, 'null'), ',' ORDER BY card.index),
           string_agg(coalesce(measured.ecc::text, 'null'), ',' ORDER BY card.index)
      FROM fleet_card AS card
      JOIN fleet_node AS node ON node.id = card.node_id AND node.removed_at IS NULL
      JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id AND cluster.removed_at IS NULL
      LEFT JOIN quotas_allocation AS held ON held.card_id = card.id AND held.released_at IS NULL
      LEFT JOIN (
           SELECT card_id,
                  greatest(0, least(999999, extract(epoch FROM %(at)s - at)))::int AS age,
                  utilization::int AS utilization,
                  (100 * memory_used / nullif(memory_total, 0))::int AS memory,
                  temperature::int AS temperature,
                  power::int AS power,
                  least(ecc_uncorrected, 999999)::int AS ecc
             FROM telemetry_cardfigures) AS measured ON measured.card_id = card.id
     WHERE card.removed_at IS NULL AND card.parent_id IS NULL
       AND %(chip)s IN ('', card.chip) AND %(cluster)s IN ('', cluster.name)
     GROUP BY node.id, cluster.name
"""
#: Whatever is in the picture has changed when one of these has.
_VERSION = """
    SELECT (SELECT max(received_at) FROM telemetry_cardfigures),
           (SELECT count(*) || '/' || coalesce(max(id), 0)
              FROM quotas_allocation WHERE released_at IS NULL),
           (SELECT md5(string_agg(state || removed_at::text, ',' ORDER BY id))
              FROM (SELECT id, left(state, 1) AS state, coalesce(removed_at, 'epoch') AS removed_at
                      FROM fleet_card) AS card),
           (SELECT md5(string_agg(name || ready || cordoned || labels::text, ',' ORDER BY id))
              FROM fleet_node WHERE removed_at IS NULL)
"""


def fleet_map_version() -> str:
    """Another text whenever the picture would be another one."""
    return "|".join(map(str, fetch_row(_VERSION)))


def fleet_map_nodes(*, at: datetime, only: FleetMapScope) -> Sequence[FleetMapNode]:
    """Every node with cards, by cluster, place in the network and name."""
    asked: dict[str, datetime | str] = {"at": at, "chip": only.chip, "cluster": only.cluster}
    rows = [
        FleetMapNode(
            name=row[0],
            cluster=row[1],
            labels=_parse_labels(row[2]),
            indices=row[3],
            chips=row[4],
            uses=row[5],
            ages=row[6],
            heat_values=tuple(row[7:]),
        )
        for row in fetch_rows(_NODES, asked)
    ]
    rows.sort(
        key=lambda row: (row.cluster, *topology_sort_key(row.labels), natural_sort_key(row.name))
    )
    return rows


def _parse_labels(value: str | Mapping[str, str]) -> Mapping[str, str]:
    """A raw cursor leaves JSON as it is."""
    return json.loads(value) if isinstance(value, str) else value


def fleet_map_tree(
    nodes: Sequence[FleetMapNode], *, by: HeatMapMetric | None
) -> Mapping[str, FleetMapPart]:
    """All parts by key, summed up; the fleet has the empty key; ``by`` None: without metrics."""
    parts = {"": FleetMapPart(kind=FLEET, name="", key="")}
    for node in nodes:
        domains = network_domains(node.labels)
        part = add_node(parts, cluster=node.cluster, domains=domains, name=node.name)
        part.node = node
        part.uses = Counter(node.uses)
        if by is not None:
            values = _recent_card_values(node, by)
            part.measured, part.total = len(values), sum(values)
            part.highest = max(values, default=None)
    parts[""].compute_totals()
    return parts


def _recent_card_values(node: FleetMapNode, by: HeatMapMetric) -> Sequence[float]:
    """The values of those cards that were measured lately."""
    line = node.heat_values[tuple(HeatMapMetric).index(by)]
    newest = FRESH.total_seconds()
    return [
        float(value)
        for value, age in zip(line.split(","), node.ages.split(","), strict=True)
        if "null" not in (value, age) and float(age) <= newest
    ]


def fleet_map_document(nodes: Sequence[FleetMapNode], *, at: datetime) -> str:
    """The data of the map, as JSON; ``static/js/topology-data.js`` reads it.

    ``domains`` and ``nodes`` are as in ``apps.quotas.selectors.topology``, without claims. A node also has
    ``indices`` (0 where they count from 0), ``ages`` (seconds before ``at``) and the metrics in the order of
    ``heats``, a line of numbers or nulls for each.
    """
    parts = fleet_map_tree(nodes, by=None)
    places = number_domains(parts[""])
    chips: dict[str, int] = {}
    lines = [
        _node_json_line(node, _domain_index_of_node(parts, node, places), chips) for node in nodes
    ]
    head = {
        "at": int(at.timestamp()),
        "fresh": int(FRESH.total_seconds()),
        "heats": list(HeatMapMetric),
        "claims": [],
        "queues": [],
        "teams": [],
        "chips": list(chips),
        "domains": encode_domains(parts[""], places),
    }
    written = json.dumps(head, separators=(",", ":"), ensure_ascii=False)
    return f'{written[:-1]},"nodes":[{",".join(lines)}]}}'


def _domain_index_of_node(
    parts: Mapping[str, FleetMapPart], node: FleetMapNode, places: Mapping[str, int]
) -> int:
    above = parts[node.key].parent
    return places[above.key] if above else 0


def _node_json_line(node: FleetMapNode, place: int, chips: dict[str, int]) -> str:
    own = node.chips.split(",")
    indices = tuple(map(int, node.indices.split(",")))
    geometries = tuple(geometries_on_node(node.labels, set(own)).values())
    count = len(indices)
    first = json.dumps(
        [
            node.name,
            place,
            encode_run_lengths(chips.setdefault(chip, len(chips)) for chip in own),
            node.uses,
            [-1, count],
            list(card_group_starts(indices, geometries)),
            0,
            0 if indices == tuple(range(count)) else list(indices),
        ],
        separators=(",", ":"),
        ensure_ascii=False,
    )
    values = ",".join(f"[{line}]" for line in node.heat_values)
    return f"{first[:-1]},[{node.ages}],[{values}]]"
