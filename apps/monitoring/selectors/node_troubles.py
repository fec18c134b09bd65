"""Nodes that somebody should look at, the worst first: read in one statement whatever the size of the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from django.db import connection

from controlplane.domain.faults import FaultLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCounts:
    """A node, what is wrong with it, and its cards by what matters most about each."""

    name: str
    uid: str
    cluster: str
    cluster_uid: str
    ready: bool
    cordoned: bool
    #: Isolated or unknown, whoever holds them.
    broken: int
    held: int
    no_new_work: int
    free: int
    #: Faults that stand on it or on its cards, notes left out, and the level of the worst; 0 if there is none.
    faults: int
    level: int

    @property
    def cards(self) -> int:
        return self.broken + self.held + self.no_new_work + self.free

    @property
    def sound(self) -> bool:
        return self.ready and not (self.cordoned or self.broken or self.faults)


_NODES = """
    SELECT node.name, node.uid, cluster.name, cluster.uid, node.ready, node.cordoned,
           coalesce(cards.broken, 0), coalesce(cards.held, 0), coalesce(cards.no_new_work, 0),
           coalesce(cards.free, 0), coalesce(faults.standing, 0), coalesce(faults.worst, 0)
      FROM fleet_node AS node
      JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id AND cluster.removed_at IS NULL
      LEFT JOIN (
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
            GROUP BY card.node_id) AS cards ON cards.node_id = node.id
      LEFT JOIN (
           SELECT node_id, count(*) AS standing, max(level) AS worst
             FROM monitoring_fault
            WHERE ended_at IS NULL AND level > %(note)s
            GROUP BY node_id) AS faults ON faults.node_id = node.id
     WHERE node.removed_at IS NULL
     ORDER BY node.ready, coalesce(cards.broken, 0) DESC, coalesce(faults.worst, 0) DESC,
              coalesce(faults.standing, 0) DESC, NOT node.cordoned, cluster.name, node.name
"""


def nodes_counted() -> Sequence[NodeCounts]:
    """Every node, the worst first: not ready, then by broken cards, then by faults, then cordoned."""
    with connection.cursor() as cursor:
        cursor.execute(_NODES, {"note": FaultLevel.NOTE.value})
        rows = cursor.fetchall()
    names = [one.name for one in fields(NodeCounts)]
    return [NodeCounts(**dict(zip(names, row, strict=True))) for row in rows]
