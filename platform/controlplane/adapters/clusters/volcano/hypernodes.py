"""From where nodes stand in the network to Volcano's HyperNodes.

::

    level      tier
    superpod   3      members: spines
    spine      2      members: leaves
    leaf       1      members: nodes, each by its exact name

The tightest level that any node has is tier 1. A domain is known by all domains around it: rack 1 of spine a is
not rack 1 of spine b. Nodes that lack an inner level stand directly in the outer domain, beside HyperNodes; as
Volcano wants Nodes at the leaves alone, they get a HyperNode of their own there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from controlplane.adapters.clusters.kubernetes import names as marking
from controlplane.adapters.clusters.volcano import names
from controlplane.adapters.clusters.volcano.changes import Act, Change
from controlplane.adapters.clusters.volcano.names import Manifest, Object
from controlplane.domain.common.topology import NETWORK_LEVELS


@dataclass(slots=True, kw_only=True)
class _Domain:
    level: str
    tier: int
    #: Names of the domains around it and its own, outermost first.
    domains: tuple[str, ...]
    nodes: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)


def tiers(nodes: Iterable[Mapping[str, str]]) -> Mapping[str, int]:
    """Tier by level, of the levels that some node stands in a domain of; 1 is the tightest."""
    present = {level for domains in nodes for level in domains}
    ordered = [level for level in reversed(NETWORK_LEVELS) if level in present]
    return {level: tier for tier, level in enumerate(ordered, start=1)}


def hyper_nodes(
    nodes: Mapping[str, Mapping[str, str]], *, installation: str
) -> tuple[Manifest, ...]:
    """All of them, the tightest first.

    :param nodes: by the node's name, its domains by level, outermost first.
    """
    tier_of = tiers(nodes.values())
    found: dict[str, _Domain] = {}
    for node, places in sorted(nodes.items()):
        around: list[str] = []
        inner = ""
        chain = []
        for level, domain in places.items():
            around.append(domain)
            chain.append((level, tuple(around)))
        for level, domains in reversed(chain):
            name = names.hyper_node_name(level, domains, installation=installation)
            at = found.setdefault(name, _Domain(level=level, tier=tier_of[level], domains=domains))
            if inner:
                at.inner.add(inner)
            else:
                at.nodes.add(node)
            inner = name
    _part(found, installation=installation)
    ordered = sorted(found.items(), key=lambda pair: (pair[1].tier, pair[0]))
    return tuple(_manifest(name, each, installation=installation) for name, each in ordered)


def plan(
    ours: Sequence[Manifest], theirs: Sequence[Object], *, installation: str
) -> tuple[Change, ...]:
    """From what the cluster has to ours, inner ones first; HyperNodes of others stay as they are."""
    there = {
        each["metadata"]["name"]: each
        for each in theirs
        if names.is_ours(each, installation=installation)
    }
    wanted = {each["metadata"]["name"] for each in ours}
    made = [
        Change(act=Act.CREATE if has is None else Act.APPLY, manifest=manifest)
        for manifest in ours
        if (has := there.get(manifest["metadata"]["name"])) is None
        or has["spec"] != manifest["spec"]
    ]
    stale = sorted(
        (each for name, each in there.items() if name not in wanted),
        key=lambda each: -int(each["spec"]["tier"]),
    )
    return (*made, *(Change(act=Act.DELETE, manifest=dict(each)) for each in stale))


def _part(found: dict[str, _Domain], *, installation: str) -> None:
    """Where a domain holds both nodes and domains, its nodes go into one of their own, a tier below."""
    for each in [each for each in found.values() if each.inner and each.nodes]:
        below = _Domain(level="", tier=each.tier - 1, domains=(*each.domains, ""), nodes=each.nodes)
        name = names.hyper_node_name(f"{each.level}-rest", each.domains, installation=installation)
        found[name] = below
        each.inner.add(name)
        each.nodes = set()


def _manifest(name: str, domain: _Domain, *, installation: str) -> Manifest:
    kind, members = ("HyperNode", domain.inner) if domain.inner else ("Node", domain.nodes)
    spec: Manifest = {
        "tier": domain.tier,
        "members": [
            {"type": kind, "selector": {"exactMatch": {"name": member}}}
            for member in sorted(members)
        ],
    }
    if domain.level:
        spec["tierName"] = domain.level
    return {
        "apiVersion": names.TOPOLOGY,
        "kind": "HyperNode",
        "metadata": {
            "name": name,
            "labels": marking.marks(installation=installation),
            "annotations": {names.TITLE: " › ".join(filter(None, domain.domains))},
        },
        "spec": spec,
    }
