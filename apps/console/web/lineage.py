"""Lineage as a diagram and as a list, both rendered on the server with links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.console.selectors.lineage import (
    DEFAULT_DEPTH,
    MAX_DEPTH,
    Lineage,
    LineageNode,
    LineageNodeKind,
    NodePair,
    lineage_of_dataset,
    lineage_of_versions,
)
from apps.models import selectors as registry
from apps.models.web.datasets import dataset_tabs
from controlplane.domain.registry.lineage import DEFAULT_SPACING, LineageEdge, layout_lineage

PAGES: Mapping[LineageNodeKind, str] = {
    LineageNodeKind.DATASET: "dataset-version",
    LineageNodeKind.JOB: "job",
    LineageNodeKind.MODEL: "model-version",
    LineageNodeKind.DEPLOYMENT: "deployment",
}
#: Margin around the diagram, so that the focus outline is not clipped.
MARGIN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageNodeBox:
    node: LineageNode
    href: str
    x: int
    y: int
    #: Whether it is the object of the page.
    here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageBranch:
    """One item of the list, and what was derived from it."""

    node: LineageNode
    href: str
    here: bool
    #: It is listed before, below another source; its own descendants are there.
    again: bool
    children: tuple[LineageBranch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageDrawing:
    boxes: tuple[LineageNodeBox, ...]
    #: Each edge as the ``d`` of an SVG path.
    wires: tuple[str, ...]
    width: int
    height: int
    box_width: int
    box_height: int
    view: str
    roots: tuple[LineageBranch, ...]
    #: ``?depth=`` of the link to a deeper graph; 0 if there is none.
    deeper: int


@login_required
def dataset_lineage(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """The lineage of a dataset version: the jobs that read it, and the models derived from it."""
    version = get_object_or_404(registry.dataset_versions_visible(request.user), uid=uid)
    depth = _requested_depth(request)
    found = lineage_of_dataset(version, user=request.user, depth=depth)
    context = {
        "version": version,
        "tabs": dataset_tabs(version, "lineage"),
        "drawing": _draw_lineage(found, here={f"{LineageNodeKind.DATASET}:{uid}"}, depth=depth),
    }
    return render(request, "console/models/dataset_lineage.html", context)


def versions_lineage(request: AuthenticatedRequest, versions: Sequence[int]) -> LineageDrawing:
    """The lineage of those model versions to the depth of ``?depth=``."""
    depth = _requested_depth(request)
    found = lineage_of_versions(versions, user=request.user, depth=depth)
    return _draw_lineage(found, here=found.seeds, depth=depth)


def _requested_depth(request: AuthenticatedRequest) -> int:
    requested = request.GET.get("depth", "")
    if not (requested.isdecimal() and len(requested) < 4):
        return DEFAULT_DEPTH
    return min(max(int(requested), DEFAULT_DEPTH), MAX_DEPTH)


def _draw_lineage(found: Lineage, *, here: frozenset[str] | set[str], depth: int) -> LineageDrawing:
    nodes = {node.key: node for node in found.nodes}
    layout = layout_lineage(list(nodes), found.edges)
    return LineageDrawing(
        boxes=tuple(
            LineageNodeBox(
                node=nodes[box.key],
                href=_node_url(nodes[box.key]),
                x=box.x,
                y=box.y,
                here=box.key in here,
            )
            for box in layout.boxes
        ),
        wires=tuple(_edge_path(wire) for wire in layout.wires),
        width=layout.width + 2 * MARGIN,
        height=layout.height + 2 * MARGIN,
        box_width=DEFAULT_SPACING.width,
        box_height=DEFAULT_SPACING.height,
        view=f"{-MARGIN} {-MARGIN} {layout.width + 2 * MARGIN} {layout.height + 2 * MARGIN}",
        roots=_nested_branches(nodes, found.edges, here),
        deeper=depth * 2 if found.more and depth < MAX_DEPTH else 0,
    )


def _node_url(node: LineageNode) -> str:
    return reverse(PAGES[node.kind], args=[node.uid])


def _edge_path(wire: LineageEdge) -> str:
    """Curves from layer to layer, horizontal where the edge passes a layer."""
    (x, y), *_ = wire.points
    parts = [f"M{x} {y}"]
    for (left, top), (right, bottom) in pairwise(wire.points):
        middle = (left + right) // 2
        parts.append(
            f"H{right}" if top == bottom else f"C{middle} {top} {middle} {bottom} {right} {bottom}"
        )
    return "".join(parts)


def _nested_branches(
    nodes: Mapping[str, LineageNode], edges: Sequence[NodePair], here: frozenset[str] | set[str]
) -> tuple[LineageBranch, ...]:
    """The graph as nested lists: each item below its first source."""
    children: dict[str, list[str]] = defaultdict(list)
    for source, target in edges:
        children[source].append(target)
    listed: set[str] = set()

    def branch(key: str) -> LineageBranch:
        again = key in listed
        listed.add(key)
        return LineageBranch(
            node=nodes[key],
            href=_node_url(nodes[key]),
            here=key in here,
            again=again and bool(children[key]),
            children=() if again else tuple(branch(one) for one in children[key]),
        )

    targets = {target for _, target in edges}
    return tuple(branch(key) for key in nodes if key not in targets)
