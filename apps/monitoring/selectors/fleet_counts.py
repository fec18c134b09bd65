"""Counts of cards by cluster and chip, and of nodes by their health: one statement each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import NamedTuple

from apps.telemetry.selectors import BUSY, FRESH
from controlplane.domain.health.faults import FaultLevel
from controlplane.persistence.transactions import fetch_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class CardCounts:
    """Numbers of cards by state. Each card is usable, isolated, unknown or cordoned."""

    total: int = 0
    usable: int = 0
    isolated: int = 0
    unknown: int = 0
    #: By its own state, or because its node is not ready or cordoned.
    no_new_work: int = 0
    #: A claim holds it, whatever its state.
    allocated: int = 0
    #: Measured now, and at ``BUSY`` percent at least.
    busy: int = 0
    #: Measured now; measured, but not lately. The rest was never measured.
    fresh: int = 0
    stale: int = 0
    #: Allocated and without recent metrics: their utilization is unknown.
    unwatched: int = 0

    @property
    def unusable(self) -> int:
        """Cards that get no new work, for whatever reason."""
        return self.total - self.usable


class ChipPool(NamedTuple):
    """The cards of one chip in one cluster."""

    cluster: str
    cluster_uid: str
    chip: str
    counts: CardCounts


_POOLS = """
    SELECT cluster.name, cluster.uid, card.chip,
           count(*),
           count(*) FILTER (WHERE card.state = 'usable' AND node.ready AND NOT node.cordoned),
           count(*) FILTER (WHERE card.state = 'isolated'),
           count(*) FILTER (WHERE card.state = 'unknown'),
           count(*) FILTER (WHERE card.state = 'no_new_work'
                               OR card.state = 'usable' AND (node.cordoned OR NOT node.ready)),
           count(held.id),
           count(*) FILTER (WHERE figures.at >= %(since)s AND figures.utilization >= %(busy)s),
           count(*) FILTER (WHERE figures.at >= %(since)s),
           count(*) FILTER (WHERE figures.at < %(since)s),
           count(held.id) FILTER (WHERE figures.at IS NULL OR figures.at < %(since)s)
      FROM fleet_card AS card
      JOIN fleet_node AS node ON node.id = card.node_id AND node.removed_at IS NULL
      JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id AND cluster.removed_at IS NULL
      LEFT JOIN quotas_allocation AS held ON held.card_id = card.id AND held.released_at IS NULL
      LEFT JOIN telemetry_cardfigures AS figures ON figures.card_id = card.id
     WHERE card.removed_at IS NULL AND card.parent_id IS NULL
     GROUP BY cluster.name, cluster.uid, card.chip
     ORDER BY cluster.name, card.chip
"""


def chip_pools(*, at: datetime) -> Sequence[ChipPool]:
    """All cards, by cluster and chip."""
    rows = fetch_rows(_POOLS, {"since": at - FRESH, "busy": BUSY})
    names = [one.name for one in fields(CardCounts)]
    return [
        ChipPool(
            cluster=row[0],
            cluster_uid=row[1],
            chip=row[2],
            counts=CardCounts(**dict(zip(names, row[3:], strict=True))),
        )
        for row in rows
    ]


def sum_card_counts(counted: Iterable[CardCounts]) -> CardCounts:
    """All of them summed."""
    found = tuple(counted)
    return CardCounts(
        **{one.name: sum(getattr(each, one.name) for each in found) for one in fields(CardCounts)}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCounts:
    """A node, what is wrong with it, and its cards by what matters most about each."""

    name: str
    uid: str
    cluster: str
    cluster_uid: str
    ready: bool
    cordoned: bool
    #: Isolated or unknown, allocated or not.
    broken: int
    held: int
    no_new_work: int
    free: int
    #: Open faults of the node and of its cards above the lowest level, and the highest level; 0 if there is
    #: none.
    faults: int
    level: int

    @property
    def cards(self) -> int:
        return self.broken + self.held + self.no_new_work + self.free

    @property
    def sound(self) -> bool:
        return self.ready and not (self.cordoned or self.broken or self.faults)


#: Materialized, as a fleet that was imported a moment ago has no statistics: the planner would count per node.
_NODES = """
    WITH cards AS MATERIALIZED (
        SELECT card.node_id,
               count(*) FILTER (WHERE card.state IN ('isolated', 'unknown')) AS broken,
               count(*) FILTER (WHERE card.state IN ('usable', 'no_new_work')
                                  AND held.id IS NOT NULL) AS held,
               count(*) FILTER (WHERE held.id IS NULL AND (card.state = 'no_new_work'
                                  OR card.state = 'usable' AND (node.cordoned OR NOT node.ready))
               ) AS no_new_work,
               count(*) FILTER (WHERE held.id IS NULL AND card.state = 'usable'
                                  AND node.ready AND NOT node.cordoned) AS free
          FROM fleet_card AS card
          JOIN fleet_node AS node ON node.id = card.node_id
          LEFT JOIN quotas_allocation AS held ON held.card_id = card.id AND held.released_at IS NULL
         WHERE card.removed_at IS NULL
         GROUP BY card.node_id
    ),
    faults AS MATERIALIZED (
        SELECT node_id, count(*) AS standing, max(level) AS worst
          FROM monitoring_fault
         WHERE ended_at IS NULL AND level > %(note)s
         GROUP BY node_id
    )
    SELECT node.name, node.uid, cluster.name, cluster.uid, node.ready, node.cordoned,
           coalesce(cards.broken, 0), coalesce(cards.held, 0), coalesce(cards.no_new_work, 0),
           coalesce(cards.free, 0), coalesce(faults.standing, 0), coalesce(faults.worst, 0)
      FROM fleet_node AS node
      JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id AND cluster.removed_at IS NULL
      LEFT JOIN cards ON cards.node_id = node.id
      LEFT JOIN faults ON faults.node_id = node.id
     WHERE node.removed_at IS NULL
     ORDER BY node.ready, coalesce(cards.broken, 0) DESC, coalesce(faults.worst, 0) DESC,
              coalesce(faults.standing, 0) DESC, NOT node.cordoned, cluster.name, node.name
"""


def nodes_with_card_counts() -> Sequence[NodeCounts]:
    """All nodes, those that need attention first: not ready, then unusable cards, then faults, then cordoned."""
    rows = fetch_rows(_NODES, {"note": FaultLevel.NOTE.value})
    names = [one.name for one in fields(NodeCounts)]
    return [NodeCounts(**dict(zip(names, row, strict=True))) for row in rows]
