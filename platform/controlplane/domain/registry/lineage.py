"""Layout of a lineage graph: sources to the left of what was created from them.

::

    layer 0        layer 1       layer 2       layer 3
    dataset v3 ──▶ fine-tune ──▶ model v2 ──▶ deployment
    base v1 ────────┘

Sugiyama's method in three steps: a node's layer is the length of the longest path to it from a node without
sources; an edge that spans layers gets a bend in each of them, so that it runs between the boxes and not
behind them, and edges of one node share their bends, so that they part as late as possible; the order
within a layer follows the mean position of the neighbours, in alternating passes, and the order with the fewest
crossings wins (K. Sugiyama, S. Tagawa, M. Toda 1981).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from controlplane.domain.common.reasons import ReasonedError

ORDERING_PASSES = 8


class LineageCycle(ReasonedError, ValueError):
    """The graph has a cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageSpacing:
    """Sizes and distances in pixels."""

    width: int = 208
    height: int = 56
    #: Between layers, where the edges run.
    across: int = 56
    #: Between boxes of a layer.
    down: int = 16
    #: Height that a passing edge occupies in a layer.
    bend: int = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageBox:
    """Position of a node; ``x`` and ``y`` are its upper left corner."""

    key: str
    layer: int
    x: int
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageEdge:
    """An edge as a polyline from the right side of a box to the left side of another."""

    source: str
    target: str
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageLayout:
    #: In reading order: layer by layer, each from top to bottom.
    boxes: tuple[LineageBox, ...]
    wires: tuple[LineageEdge, ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class _Bend:
    """The point at which edges of that node cross a layer."""

    source: str
    layer: int


Edge = tuple[str, str]
_Item = str | _Bend
_Order = list[list[_Item]]

DEFAULT_SPACING = LineageSpacing()


def assign_layers(nodes: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """The length of the longest path to each node.

    :raises LineageCycle: if the graph has a cycle.
    """
    waiting = {node: sum(target == node for _, target in edges) for node in nodes}
    layer = dict.fromkeys(nodes, 0)
    ready = [node for node in nodes if not waiting[node]]
    for node in ready:
        for source, target in edges:
            if source != node:
                continue
            layer[target] = max(layer[target], layer[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    if len(ready) < len(nodes):
        stuck = sorted(node for node in nodes if waiting[node])
        raise LineageCycle(
            "lineage.graph.cycle", "the lineage has a cycle: {items}", items=", ".join(stuck)
        )
    return layer


def _pull_sources_right(layer: dict[str, int], edges: Sequence[Edge]) -> dict[str, int]:
    """Place nodes without sources in the layer directly before their first target."""
    targets = {target for _, target in edges}
    near: dict[str, int] = {}
    for source, target in edges:
        if source not in targets:
            near[source] = min(near.get(source, layer[target]), layer[target] - 1)
    return layer | near


def layout_lineage(
    nodes: Sequence[str],
    edges: Sequence[Edge],
    *,
    spacing: LineageSpacing = DEFAULT_SPACING,
) -> LineageLayout:
    """Boxes of the nodes and polylines of the edges; edges to unknown nodes are ignored.

    The result is deterministic for the same nodes and edges in the same order.

    :raises LineageCycle: if the graph has a cycle.
    """
    nodes = list(dict.fromkeys(nodes))
    known = set(nodes)
    edges = [edge for edge in dict.fromkeys(edges) if known.issuperset(edge)]
    layer = _pull_sources_right(assign_layers(nodes, edges), edges)
    bends = {
        (source, target): [_Bend(source, at) for at in range(layer[source] + 1, layer[target])]
        for source, target in edges
    }
    chains: list[list[_Item]] = [[edge[0], *bends[edge], edge[1]] for edge in edges]
    segments = dict.fromkeys(segment for chain in chains for segment in pairwise(chain))
    order = _minimise_crossings(_order_layers(nodes, layer, bends), segments)
    coordinates = _node_coordinates(order, spacing)
    boxes = tuple(
        LineageBox(key=item, layer=layer[item], x=coordinates[item][0], y=coordinates[item][1])
        for row in order
        for item in row
        if isinstance(item, str)
    )
    wires = tuple(
        LineageEdge(
            source=source,
            target=target,
            points=_edge_points(source, bends[source, target], target, coordinates, spacing),
        )
        for source, target in edges
    )
    return LineageLayout(
        boxes=boxes,
        wires=wires,
        width=max((box.x + spacing.width for box in boxes), default=0),
        height=max((box.y + spacing.height for box in boxes), default=0),
    )


def _order_layers(
    nodes: Sequence[str], layer: Mapping[str, int], bends: Mapping[Edge, Sequence[_Bend]]
) -> _Order:
    rows: _Order = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for node in nodes:
        rows[layer[node]].append(node)
    for bend in dict.fromkeys(bend for passed in bends.values() for bend in passed):
        rows[bend.layer].append(bend)
    return rows


def _minimise_crossings(rows: _Order, segments: Iterable[tuple[_Item, _Item]]) -> _Order:
    """The order with the fewest crossings found in ``ORDERING_PASSES`` passes."""
    before: dict[_Item, list[_Item]] = defaultdict(list)
    after: dict[_Item, list[_Item]] = defaultdict(list)
    for source, target in segments:
        before[target].append(source)
        after[source].append(target)
    best, fewest = rows, _count_crossings(rows, after)
    current = rows
    for iteration in range(ORDERING_PASSES):
        if not fewest:
            break
        current = _reorder_by_neighbours(
            current, before if iteration % 2 == 0 else after, back=bool(iteration % 2)
        )
        if (crossings := _count_crossings(current, after)) < fewest:
            best, fewest = current, crossings
    return best


def _reorder_by_neighbours(
    rows: _Order, neighbours: Mapping[_Item, Sequence[_Item]], *, back: bool
) -> _Order:
    done: _Order = [list(row) for row in rows]
    indices = range(len(rows) - 2, -1, -1) if back else range(1, len(rows))
    for index in indices:
        fixed = {item: place for place, item in enumerate(done[index + 1 if back else index - 1])}
        own = {item: float(place) for place, item in enumerate(done[index])}

        def mean(
            item: _Item, own: dict[_Item, float] = own, fixed: dict[_Item, int] = fixed
        ) -> float:
            near = [fixed[one] for one in neighbours.get(item, ()) if one in fixed]
            return sum(near) / len(near) if near else own[item]

        done[index].sort(key=mean)
    return done


def _count_crossings(rows: _Order, after: Mapping[_Item, Sequence[_Item]]) -> int:
    total = 0
    for left, right in pairwise(rows):
        place = {item: index for index, item in enumerate(right)}
        ends = [sorted(place[one] for one in after.get(item, ())) for item in left]
        flat = [end for several in ends for end in several]
        total += sum(
            flat[first] > flat[second]
            for first in range(len(flat))
            for second in range(first + 1, len(flat))
        )
    return total


def _node_coordinates(order: _Order, spacing: LineageSpacing) -> dict[_Item, tuple[int, int]]:
    """Upper left corners; each layer is centred vertically on the tallest."""

    def height(item: _Item) -> int:
        return spacing.bend if isinstance(item, _Bend) else spacing.height

    heights = [sum(map(height, row)) + spacing.down * max(0, len(row) - 1) for row in order]
    tallest = max(heights, default=0)
    coordinates: dict[_Item, tuple[int, int]] = {}
    for index, row in enumerate(order):
        y = (tallest - heights[index]) // 2
        for item in row:
            coordinates[item] = (index * (spacing.width + spacing.across), y)
            y += height(item) + spacing.down
    return coordinates


def _edge_points(
    source: str,
    bends: Sequence[_Bend],
    target: str,
    coordinates: Mapping[_Item, tuple[int, int]],
    spacing: LineageSpacing,
) -> tuple[tuple[int, int], ...]:
    middle = spacing.height // 2
    points = [(coordinates[source][0] + spacing.width, coordinates[source][1] + middle)]
    for bend in bends:
        x, y = coordinates[bend]
        level = y + spacing.bend // 2
        points += [(x, level), (x + spacing.width, level)]
    points.append((coordinates[target][0], coordinates[target][1] + middle))
    return tuple(points)
