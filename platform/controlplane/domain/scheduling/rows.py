"""The rows of a fleet, as the nodes tell them.

A *row* is the cards of one chip on one node; a node with two chips has two rows, one without cards has one.
"""

from __future__ import annotations

from typing import NamedTuple

from controlplane.domain.scheduling.shapes import Demand
from controlplane.domain.scheduling.snapshots import CardView, NodeView, Part, Snapshot

#: Cores of a node on which CPU is shared rather than owned.
ENDLESS = 1 << 62


class Row(NamedTuple):
    """Cards that are given out together."""

    node: NodeView
    chip: str
    #: In index order.
    cards: tuple[CardView, ...]
    part: Part


def rows_of(snapshot: Snapshot) -> list[Row]:
    """By node, in the order of the snapshot."""
    return [
        Row(node, part.chip, part.cards, part) for node in snapshot.nodes for part in node.parts
    ]


def cpu_on(node: NodeView) -> int:
    """Thousandths of a core that nobody was promised; below 0 where too much was."""
    return node.capacity.cpu - node.promised.cpu if node.owns_cpu else ENDLESS


def memory_on(node: NodeView) -> int:
    """Bytes that nobody was promised; below 0 where too much was."""
    return node.capacity.memory - node.promised.memory


def suits(row: Row, demand: Demand) -> bool:
    """Whether it may bear the demand by its chip, labels and taints."""
    return (
        demand.chip in ("", row.chip)
        and row.node.taints <= demand.tolerations
        and all(row.node.labels.get(name) == value for name, value in demand.selector)
    )
