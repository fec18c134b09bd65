"""The network above the nodes, from data: which nodes share a leaf, a spine, a superpod.

Levels come from the nodes themselves, outermost first; below the innermost is the node, above the outermost the
cluster. No level has a meaning here: a rack is treated like a superpod.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.scheduling.snapshots import NodeSnapshot

NODE = "node"
CLUSTER = "cluster"

#: The domain of a row that has none at that level.
OUTSIDE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyLevel:
    name: str
    #: [rows]: the number of the domain that each row is in; ``OUTSIDE`` where it is in none.
    domain: NDArray[np.int64]
    #: Names of the domains, by number.
    names: tuple[str, ...]
    #: Every row is in a domain.
    covers_all: bool = False

    def __len__(self) -> int:
        return len(self.names)

    def totals(self, amounts: NDArray[np.int64]) -> NDArray[np.int64]:
        """[domains]: the sum over the rows of each domain."""
        domain = self.domain
        if not self.covers_all:
            inside = domain != OUTSIDE
            domain, amounts = domain[inside], amounts[inside]
        return np.bincount(domain, weights=amounts, minlength=len(self.names)).astype(np.int64)

    def rows(self, domain: int) -> NDArray[np.bool_]:
        inside: NDArray[np.bool_] = self.domain == domain
        return inside


class NetworkTopology:
    """The levels of a fleet, innermost first."""

    def __init__(self, nodes: Sequence[NodeSnapshot]) -> None:
        """:param nodes: the node of each row."""
        self.levels = tuple(_topology_level(name, nodes) for name in _level_names(nodes))
        self._rows = len(nodes)

    def between(self, inner: str, outer: str) -> tuple[TopologyLevel, ...]:
        """The levels from one to the other, both included; none where no node has the outer one.

        An inner one that no node has is the innermost, one that is wider than the outer one is that.
        """
        names = [level.name for level in self.levels]
        if outer not in names:
            return ()
        last = names.index(outer)
        first = names.index(inner) if inner in names else 0
        return self.levels[min(first, last) : last + 1]

    def knows(self, name: str) -> bool:
        """Whether some node has that level; anywhere, which has no name, is everywhere."""
        return not name or any(level.name == name for level in self.levels)

    def inside(self, name: str) -> NDArray[np.bool_]:
        """[rows]: those in some domain of that level; none where no node has it."""
        mask = np.zeros(self._rows, dtype=np.bool_)
        for level in self.between(name, name):
            mask |= level.domain != OUTSIDE
        return mask


def _level_names(nodes: Sequence[NodeSnapshot]) -> list[str]:
    """From the node up to the cluster; where clusters know different levels, the order of each is kept."""
    known: list[str] = []
    for domains in {tuple(node.domains): None for node in nodes}:
        place = 0
        for name in reversed(domains):
            if name in known:
                place = known.index(name) + 1
            else:
                known.insert(place, name)
                place += 1
    return [NODE, *known, CLUSTER]


def _topology_level(name: str, nodes: Sequence[NodeSnapshot]) -> TopologyLevel:
    numbers: dict[tuple[str, str], int] = {}
    domain = np.array(
        [
            OUTSIDE if key is None else numbers.setdefault(key, len(numbers))
            for key in (_domain_key(name, node) for node in nodes)
        ],
        dtype=np.int64,
    )
    covers_all = bool((domain != OUTSIDE).all())
    names = tuple(name for _, name in numbers)
    return TopologyLevel(name=name, domain=domain, names=names, covers_all=covers_all)


def _domain_key(level: str, node: NodeSnapshot) -> tuple[str, str] | None:
    if level == NODE:
        return node.cluster, node.uid
    if level == CLUSTER:
        return node.cluster, node.cluster
    name = node.domains.get(level)
    return None if name is None else (node.cluster, name)
