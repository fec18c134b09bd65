"""The picture of lineage: whatever the graph, it can be read."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.registry.lineage import (
    LineageBox,
    LineageCycle,
    LineageLayout,
    LineageSpacing,
    assign_layers,
    layout_lineage,
)

SPACING = LineageSpacing()
Edges = list[tuple[str, str]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], Edges]:
    """Edges lead from a smaller number to a larger one, so none leads back."""
    count = draw(st.integers(1, 14))
    nodes = [str(number) for number in range(count)]
    pairs = list(combinations(nodes, 2))
    edges = draw(st.lists(st.sampled_from(pairs), max_size=30)) if pairs else []
    return draw(st.permutations(nodes)), edges


def box_of(found: LineageLayout, key: str) -> LineageBox:
    return next(box for box in found.boxes if box.key == key)


def overlap(one: LineageBox, other: LineageBox) -> bool:
    return abs(one.x - other.x) < SPACING.width and abs(one.y - other.y) < SPACING.height


@given(graphs())
def test_every_node_has_one_box_and_boxes_keep_apart(graph: tuple[list[str], Edges]) -> None:
    found = layout_lineage(*graph)
    assert sorted(box.key for box in found.boxes) == sorted(graph[0])
    assert not any(overlap(one, other) for one, other in combinations(found.boxes, 2))


@given(graphs())
def test_every_edge_points_right_and_every_wire_too(graph: tuple[list[str], Edges]) -> None:
    found = layout_lineage(*graph)
    assert {(wire.source, wire.target) for wire in found.wires} == set(graph[1])
    for wire in found.wires:
        assert box_of(found, wire.source).layer < box_of(found, wire.target).layer
        assert all(here[0] < there[0] for here, there in pairwise(wire.points))


@given(graphs())
def test_edges_run_between_the_boxes(graph: tuple[list[str], Edges]) -> None:
    found = layout_lineage(*graph)
    for wire in found.wires:
        inner = wire.points[1:-1]
        for (left, level), (right, _) in zip(inner[::2], inner[1::2], strict=True):
            behind = [
                box
                for box in found.boxes
                if box.x < right
                and left < box.x + SPACING.width
                and box.y < level < box.y + SPACING.height
            ]
            assert behind == []


@given(graphs())
def test_the_layout_contains_all_boxes_and_no_empty_layer(graph: tuple[list[str], Edges]) -> None:
    found = layout_lineage(*graph)
    for box in found.boxes:
        assert 0 <= box.x <= found.width - SPACING.width
        assert 0 <= box.y <= found.height - SPACING.height
    reached = {box.layer for box in found.boxes}
    assert reached == set(range(len(reached)))


@given(graphs())
def test_a_layer_is_the_longest_path_to_its_nodes(graph: tuple[list[str], Edges]) -> None:
    nodes, edges = graph
    found = assign_layers(nodes, list(dict.fromkeys(edges)))
    for node in nodes:
        before = [found[source] for source, target in edges if target == node]
        assert found[node] == (max(before) + 1 if before else 0)


@given(graphs())
def test_the_same_graph_gives_the_same_layout(graph: tuple[list[str], Edges]) -> None:
    assert layout_lineage(*graph) == layout_lineage(*graph)


def test_sources_are_directly_before_their_first_target() -> None:
    found = layout_lineage(["base", "late", "a", "b"], [("base", "a"), ("a", "b"), ("late", "b")])
    assert box_of(found, "late").layer == 1


def test_edges_of_one_node_go_together_until_they_part() -> None:
    way = [("s", "a"), ("a", "b"), ("b", "c"), ("c", "d")]
    found = layout_lineage(["s", "a", "b", "c", "d"], [*way, ("s", "c"), ("s", "d")])
    near, far = (
        next(w.points for w in found.wires if w.source == "s" and w.target == end)
        for end in ("c", "d")
    )
    assert near[:-1] == far[: len(near) - 1]


def test_a_crossing_that_can_be_avoided_is_avoided() -> None:
    found = layout_lineage(["a", "b", "x", "y"], [("a", "y"), ("b", "x")])
    order = [box.key for box in found.boxes if box.layer == 1]
    assert order == ["y", "x"]


def test_an_edge_to_an_unknown_node_is_ignored() -> None:
    assert layout_lineage(["a"], [("hidden", "a")]).wires == ()


def test_an_empty_graph_gives_an_empty_layout() -> None:
    assert layout_lineage([], []) == LineageLayout(boxes=(), wires=(), width=0, height=0)


def test_a_cycle_is_refused() -> None:
    with pytest.raises(LineageCycle, match="a, b"):
        layout_lineage(["a", "b", "c"], [("a", "b"), ("b", "a"), ("b", "c")])
