"""Lineage as a picture and as a list: drawn on the server, with real links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from apps.accounts.web.requests import SignedIn
from apps.models import selectors as registry
from apps.models.web.tabs import dataset_tabs
from apps.serving.selectors.lineage import (
    DEEPEST,
    FIRST_DEPTH,
    Edge,
    Lineage,
    Node,
    NodeKind,
    lineage_of_dataset,
    lineage_of_versions,
)
from controlplane.domain.lineage import DEFAULT_SPACING, Wire, picture

PAGES: Mapping[NodeKind, str] = {
    NodeKind.DATASET: "dataset-version",
    NodeKind.JOB: "job",
    NodeKind.MODEL: "model-version",
    NodeKind.DEPLOYMENT: "deployment",
}
#: Room around the picture, so that the outline of what has the focus is not cut.
MARGIN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBox:
    node: Node
    href: str
    x: int
    y: int
    #: Whether the page is about it.
    here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One thing of the list, and what was made from it."""

    node: Node
    href: str
    here: bool
    #: It was listed before, below something else that it was made from; what follows it is there.
    again: bool
    made: tuple[Branch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    boxes: tuple[DrawnBox, ...]
    #: Each wire as the ``d`` of an SVG path.
    wires: tuple[str, ...]
    width: int
    height: int
    box_width: int
    box_height: int
    view: str
    roots: tuple[Branch, ...]
    #: ``?depth=`` of the next look; 0 if there is no more.
    deeper: int


@login_required
def dataset_lineage(request: SignedIn, uid: str) -> HttpResponse:
    """Who uses a dataset version: the jobs that read it, and what was made from it."""
    version = get_object_or_404(registry.dataset_versions_visible(request.user), uid=uid)
    depth = _depth(request)
    found = lineage_of_dataset(version, user=request.user, depth=depth)
    context = {
        "version": version,
        "tabs": dataset_tabs(version, "lineage"),
        "drawing": _drawn(found, here={f"{NodeKind.DATASET}:{uid}"}, depth=depth),
    }
    return render(request, "registry/dataset_lineage.html", context)


def drawn_versions(request: SignedIn, versions: Sequence[int]) -> Drawing:
    """The picture around those model versions, as deep as ``?depth=`` asks."""
    depth = _depth(request)
    found = lineage_of_versions(versions, user=request.user, depth=depth)
    return _drawn(found, here=found.seeds, depth=depth)


def _depth(request: SignedIn) -> int:
    asked = request.GET.get("depth", "")
    if not (asked.isdecimal() and len(asked) < 4):
        return FIRST_DEPTH
    return min(max(int(asked), FIRST_DEPTH), DEEPEST)


def _drawn(found: Lineage, *, here: frozenset[str] | set[str], depth: int) -> Drawing:
    nodes = {node.key: node for node in found.nodes}
    laid = picture(list(nodes), found.edges)
    return Drawing(
        boxes=tuple(
            DrawnBox(
                node=nodes[box.key],
                href=_href(nodes[box.key]),
                x=box.x,
                y=box.y,
                here=box.key in here,
            )
            for box in laid.boxes
        ),
        wires=tuple(_path(wire) for wire in laid.wires),
        width=laid.width + 2 * MARGIN,
        height=laid.height + 2 * MARGIN,
        box_width=DEFAULT_SPACING.width,
        box_height=DEFAULT_SPACING.height,
        view=f"{-MARGIN} {-MARGIN} {laid.width + 2 * MARGIN} {laid.height + 2 * MARGIN}",
        roots=_roots(nodes, found.edges, here),
        deeper=depth * 2 if found.more and depth < DEEPEST else 0,
    )


def _href(node: Node) -> str:
    return reverse(PAGES[node.kind], args=[node.uid])


def _path(wire: Wire) -> str:
    """Curves from layer to layer, level where the wire passes one."""
    (x, y), *_ = wire.points
    parts = [f"M{x} {y}"]
    for (left, top), (right, bottom) in pairwise(wire.points):
        middle = (left + right) // 2
        parts.append(
            f"H{right}" if top == bottom else f"C{middle} {top} {middle} {bottom} {right} {bottom}"
        )
    return "".join(parts)


def _roots(
    nodes: Mapping[str, Node], edges: Sequence[Edge], here: frozenset[str] | set[str]
) -> tuple[Branch, ...]:
    """The same as nested lists: each thing below the first thing that it was made from."""
    made: dict[str, list[str]] = defaultdict(list)
    for source, target in edges:
        made[source].append(target)
    listed: set[str] = set()

    def branch(key: str) -> Branch:
        again = key in listed
        listed.add(key)
        return Branch(
            node=nodes[key],
            href=_href(nodes[key]),
            here=key in here,
            again=again and bool(made[key]),
            made=() if again else tuple(branch(one) for one in made[key]),
        )

    targets = {target for _, target in edges}
    return tuple(branch(key) for key in nodes if key not in targets)
