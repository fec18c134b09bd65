"""Where a node stands in the network, as its labels say."""

from __future__ import annotations

from collections.abc import Mapping

#: Levels, outermost first. A superpod shares memory, a spine and a leaf are switches, a rack is a place.
LEVELS = ("superpod", "spine", "leaf", "rack")
#: ``topology.ninefold.dev/leaf: l3``
PREFIX = "topology.ninefold.dev/"


def domains_in(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Level → name of the domain, outermost first; levels that no label names are absent."""
    return {level: labels[PREFIX + level] for level in LEVELS if PREFIX + level in labels}


def labels_of(domains: Mapping[str, str]) -> Mapping[str, str]:
    """The labels that ``domains_in`` reads so."""
    return {PREFIX + level: name for level, name in domains.items()}
