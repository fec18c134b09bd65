"""Network domains of each node, from data of the cluster: pure functions over plain dicts.

For each level the first of these that names a domain applies:

1. a label or an annotation by the operator: ``ninefold.io/leaf = l3``;
2. Volcano's HyperNodes, if the cluster has any: a tier whose name is a level is that level, the others are leaf,
   spine and superpod from the tightest tier outwards;
3. labels of vendors and of Kubernetes itself (``_LABELS``), the most specific first.

Names of domains are unique in their cluster and level: a rack that is numbered within its superpod has both
numbers in its name. A zone counts as a spine if nothing more specific is known: the network is uniform within
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from controlplane.adapters.clusters.kubernetes.api import (
    Object,
    annotations_of,
    labels_of,
    nested_field,
    object_name,
)
from controlplane.domain.common.topology import NETWORK_LEVELS, TOPOLOGY_LABEL_PREFIX

Domains = Mapping[str, str]

#: Where Volcano keeps them.
HYPERNODES: Final = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
#: Before the name of a level, in a label or annotation of a node.
OPERATOR: Final = "ninefold.io/"
#: By level, labels or annotations whose value names the domain, the most exact first.
_LABELS: Mapping[str, tuple[str, ...]] = {
    "superpod": (
        "huawei.com/topotree.superpodid",
        "superPodID",
        "network.topology.nvidia.com/accelerator",
        "nvidia.com/gpu.clique",
    ),
    "spine": (
        "network.topology.nvidia.com/spine",
        "topology.kubernetes.io/spine",
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/zone",
    ),
    "leaf": (
        "network.topology.nvidia.com/leaf",
        "network.topology.nvidia.com/block",
        "topology.kubernetes.io/leaf",
    ),
    "rack": ("huawei.com/topotree.rackid", "topology.kubernetes.io/rack"),
}
#: Its numbers begin anew in each superpod.
_RACK_OF_SUPERPOD = "huawei.com/topotree.rackid"
_ANY_RACK = "/rack"
#: Levels that tiers without a telling name are, the tightest first.
_TIERS = ("leaf", "spine", "superpod")
#: Superpods are numbered from 0; a node in none may carry a negative number.
_NO_SUPERPOD = re.compile(r"-\d+|")
_LONGEST_PATTERN = 256


def domains_of(
    nodes: Sequence[Object], *, hypernodes: Sequence[Object] = ()
) -> Mapping[str, Domains]:
    """By node's name, its domains by level, outermost first; levels that nothing names are absent."""
    by_tier = _hypernode_domains(nodes, hypernodes) if hypernodes else {}
    found = {}
    for node in nodes:
        # Where an annotation and a label have one name, the label holds.
        texts = {**annotations_of(node), **labels_of(node)}
        stated = {
            level: name
            for level in NETWORK_LEVELS
            for prefix in (TOPOLOGY_LABEL_PREFIX, OPERATOR)
            if (name := texts.get(prefix + level, "").strip())
        }
        named = {**_domains_from_labels(texts), **by_tier.get(object_name(node), {}), **stated}
        found[object_name(node)] = {
            level: named[level] for level in NETWORK_LEVELS if level in named
        }
    return found


def _domains_from_labels(node_metadata: Mapping[str, str]) -> Domains:
    found = {}
    for level, labels in _LABELS.items():
        for label in labels:
            value = node_metadata.get(label, "").strip()
            if not _NO_SUPERPOD.fullmatch(value):
                found[level] = value
                break
    if "rack" in found and _RACK_OF_SUPERPOD in node_metadata and "superpod" in found:
        found["rack"] = f"{found['superpod']}-{found['rack']}"
    if "rack" not in found:
        others = sorted(
            label for label in node_metadata if label.endswith(_ANY_RACK) and node_metadata[label]
        )
        if others:
            found["rack"] = node_metadata[others[0]]
    return found


# -- HyperNodes --


def _hypernode_domains(
    nodes: Sequence[Object], hypernodes: Sequence[Object]
) -> Mapping[str, dict[str, str]]:
    """By node's name: level → HyperNode."""
    known = {object_name(each): each for each in hypernodes}
    levels = _hypernode_levels(known)
    above = _parent_hypernodes(known)
    found: dict[str, dict[str, str]] = {}
    for name, hypernode in known.items():
        # It and those above it, the tightest first; a circle is followed once.
        chain: dict[str, None] = {}
        while name and name not in chain:
            chain[name] = None
            name = above.get(name, "")  # noqa: PLW2901 - the next one above
        for node in _member_nodes(hypernode, nodes):
            domains = found.setdefault(node, {})
            for each in chain:
                if level := levels.get(each):
                    domains.setdefault(level, each)
    return found


def _hypernode_levels(known: Mapping[str, Object]) -> Mapping[str, str]:
    """The level of each HyperNode's tier; tiers beyond the supported ones have none."""
    specs = {name: nested_field(each, "spec") for name, each in known.items()}
    tiers = {name: int(spec.get("tier") or 0) for name, spec in specs.items()}
    named = {
        tiers[name]: word
        for name, spec in specs.items()
        if (word := str(spec.get("tierName", "")).lower()) in NETWORK_LEVELS
    }
    free = iter(level for level in _TIERS if level not in named.values())
    of_tier = {tier: named.get(tier) or next(free, "") for tier in sorted(set(tiers.values()))}
    return {name: of_tier[tier] for name, tier in tiers.items()}


def _parent_hypernodes(known: Mapping[str, Object]) -> Mapping[str, str]:
    """By HyperNode, the one that it is a member of; of several, the first by name."""
    above: dict[str, str] = {}
    for name in sorted(known):
        for selector in _member_selectors(known[name], kind="HyperNode"):
            matches = _member_matcher(selector)
            for other in known:
                if other != name and matches(other, {}):
                    above.setdefault(other, name)
    return above


def _member_nodes(hypernode: Object, nodes: Sequence[Object]) -> list[str]:
    selectors = _member_selectors(hypernode, kind="Node")
    # Most are exact names, as discovery writes them: thousands, so a table lookup replaces matching.
    named = {each["exactMatch"].get("name") for each in selectors if each.get("exactMatch")}
    matchers = [_member_matcher(each) for each in selectors if not each.get("exactMatch")]
    return [
        name
        for node in (nodes if selectors else ())
        if (name := object_name(node)) in named
        or any(matches(name, labels_of(node)) for matches in matchers)
    ]


def _member_selectors(hypernode: Object, *, kind: str) -> list[Object]:
    members = nested_field(hypernode, "spec", "members")
    return [member.get("selector") or {} for member in members if member.get("type") == kind]


def _member_matcher(selector: Object) -> Callable[[str, Mapping[str, str]], bool]:
    """Whether a member with that name and those labels is meant."""
    if exact := selector.get("exactMatch"):
        wanted = exact.get("name")
        return lambda name, _labels: name == wanted
    if pattern := str((selector.get("regexMatch") or {}).get("pattern", "")):
        try:
            expression = re.compile(pattern[:_LONGEST_PATTERN])
        except re.error:
            return lambda _name, _labels: False
        # As Volcano does it: a match anywhere in the name.
        return lambda name, _labels: expression.search(name) is not None
    if wanted_labels := selector.get("labelMatch"):
        return lambda _name, labels: _selector_matches(wanted_labels, labels)
    return lambda _name, _labels: False


def _selector_matches(selector: Object, labels: Mapping[str, str]) -> bool:
    for name, value in (selector.get("matchLabels") or {}).items():
        if labels.get(name) != value:
            return False
    for rule in selector.get("matchExpressions") or ():
        name, values = rule.get("key", ""), rule.get("values") or ()
        results = {
            "In": labels.get(name) in values,
            "NotIn": labels.get(name) not in values,
            "Exists": name in labels,
            "DoesNotExist": name not in labels,
        }
        if not results.get(rule.get("operator", ""), False):
            return False
    return True
