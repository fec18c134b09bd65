"""Descriptions of simulated fleets: groups of equal nodes with the geometry of their chips.

::

    [[groups]]
    name = "h800"                        64 nodes  h800-01 … h800-64, 8 cards each
    chip = "nvidia-h800"                 ├─ h800-spine-1 ─┬─ h800-leaf-1   h800-01 … h800-16
    nodes = 64                           │                └─ h800-leaf-2   h800-17 … h800-32
    levels = { leaf = 16, spine = 32 }   └─ h800-spine-2 ─┬─ h800-leaf-3 …

``levels`` are the parts of the network (``domain.common.topology``) and how many nodes each has. Optional:
``cards`` of a node (as usual for the chip), ``cores`` and ``memory_gib`` of a node, ``numa`` (such as ``0-3_4-7``;
two halves by default) and ``labels`` of its nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from controlplane.domain.common.accelerators import Chip, ChipKind
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.common.topology import NETWORK_LEVELS, InvalidCardGroups, parse_card_groups
from controlplane.domain.common.topology import Group as Cards

#: Limit of the whole fleet, so that a typing error does not fill a database.
MAX_NODES = 20_000
_MAX_CARDS = 64
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_KEYS = frozenset(
    {"name", "chip", "nodes", "cards", "cores", "memory_gib", "levels", "numa", "labels"}
)
_DEFAULT_CORES = 192
_DEFAULT_MEMORY_GIB = 2048


class FleetDescriptionRefused(ValueError):
    """The description is invalid; the message names the group, the value and the valid range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """A group of equal nodes."""

    name: str
    chip: Chip
    nodes: int
    #: Cards of one node.
    cards: int
    capacity: Resources
    #: Level of the network → nodes of one domain, outermost first.
    levels: Mapping[str, int] = field(default_factory=dict)
    rings: tuple[Cards, ...] = ()
    numa: tuple[Cards, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNode:
    name: str
    group: NodeGroup
    #: Its network domains by level, outermost first.
    domains: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFleet:
    groups: tuple[NodeGroup, ...]

    @property
    def cards(self) -> int:
        return sum(group.nodes * group.cards for group in self.groups)

    def nodes(self) -> Iterator[SimulatedNode]:
        """All nodes, by group."""
        for group in self.groups:
            for number in range(group.nodes):
                yield SimulatedNode(
                    name=_numbered_name(group.name, number, of=group.nodes),
                    group=group,
                    domains={
                        level: _numbered_name(
                            f"{group.name}-{level}", number // size, of=group.nodes // size
                        )
                        for level, size in group.levels.items()
                    },
                )


def parse_simulated_fleet(
    description: Mapping[str, Any], *, chips: Mapping[str, Chip]
) -> SimulatedFleet:
    """The fleet of a description as TOML or JSON gives it, ``{"groups": [{…}, …]}``.

    :raises FleetDescriptionRefused: if there is no such fleet.
    """
    entries = description.get("groups")
    if not isinstance(entries, list) or not entries:
        raise FleetDescriptionRefused("a fleet needs at least one group of nodes: [[groups]]")
    if unknown := sorted(set(description) - {"groups"}):
        raise FleetDescriptionRefused(
            f"a fleet has groups and nothing else, got {', '.join(unknown)}"
        )
    groups = tuple(_parse_group(entry, chips) for entry in entries)
    names = [group.name for group in groups]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise FleetDescriptionRefused(f"two groups are called {twice[0]!r}; give each its own name")
    if (total := sum(group.nodes for group in groups)) > MAX_NODES:
        raise FleetDescriptionRefused(
            f"a simulated fleet has at most {MAX_NODES} nodes, got {total}"
        )
    return SimulatedFleet(groups=groups)


def _numbered_name(name: str, number: int, *, of: int) -> str:
    """A numbered name, zero-padded so that names sort by number."""
    return name if of == 1 else f"{name}-{number + 1:0{len(str(of))}}"


def _parse_group(entry: Any, chips: Mapping[str, Chip]) -> NodeGroup:
    if not isinstance(entry, Mapping):
        raise FleetDescriptionRefused(f"a group is a table of values, got {entry!r}")
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FleetDescriptionRefused(
            f"a group's name is 1 to 40 of a-z, 0-9 and '-', not at its ends; got {name!r}"
        )
    where = f"group {name!r}"
    if unknown := sorted(set(entry) - _KEYS):
        raise FleetDescriptionRefused(
            f"{where}: unknown {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}"
        )
    chip = _find_chip(entry.get("chip"), chips, where=where)
    nodes = _parse_count(entry, "nodes", where=where, most=MAX_NODES)
    cards = _parse_card_count(entry, chip, where=where)
    return NodeGroup(
        name=name,
        chip=chip,
        nodes=nodes,
        cards=cards,
        capacity=Resources(
            cpu=Millicpu(1000 * _parse_count(entry, "cores", where=where, default=_DEFAULT_CORES)),
            memory=Bytes(
                GIB * _parse_count(entry, "memory_gib", where=where, default=_DEFAULT_MEMORY_GIB)
            ),
        ),
        levels=_parse_levels(entry.get("levels", {}), nodes=nodes, where=where),
        rings=_rings_present(chip.rings, cards),
        numa=_parse_numa(entry.get("numa"), chip=chip, cards=cards, where=where),
        labels=_parse_labels(entry.get("labels", {}), where=where),
    )


def _find_chip(name: object, chips: Mapping[str, Chip], *, where: str) -> Chip:
    if isinstance(name, str) and name in chips:
        return chips[name]
    near = get_close_matches(str(name), chips, n=3, cutoff=0.5)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    raise FleetDescriptionRefused(
        f"{where}: no chip is called {name!r}{meant} Known: {', '.join(sorted(chips))}"
    )


def _parse_count(
    entry: Mapping[str, Any],
    key: str,
    *,
    where: str,
    default: int | None = None,
    most: int = 1 << 20,
) -> int:
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise FleetDescriptionRefused(
            f"{where}: {key} is a whole number from 1 to {most}, got {value!r}"
        )
    return value


def _parse_card_count(entry: Mapping[str, Any], chip: Chip, *, where: str) -> int:
    cards = _parse_count(
        entry, "cards", where=where, default=chip.cards_per_node or 8, most=_MAX_CARDS
    )
    if 0 < chip.cards_per_node < cards:
        raise FleetDescriptionRefused(
            f"{where}: a node of {chip.name} has at most {chip.cards_per_node} cards, got {cards}"
        )
    if cards % chip.aligned_to:
        raise FleetDescriptionRefused(
            f"{where}: cards of {chip.name} come in groups of {chip.aligned_to}, got {cards}"
        )
    return cards


def _parse_levels(levels: object, *, nodes: int, where: str) -> Mapping[str, int]:
    if not isinstance(levels, Mapping):
        raise FleetDescriptionRefused(
            f"{where}: levels are names and nodes of each, such as {{ leaf = 16, spine = 64 }}; "
            f"got {levels!r}"
        )
    if unknown := [name for name in levels if name not in NETWORK_LEVELS]:
        raise FleetDescriptionRefused(
            f"{where}: no level is called {unknown[0]!r}; levels are {', '.join(NETWORK_LEVELS)}"
        )
    sizes = {
        name: _parse_count(levels, name, where=f"{where}, levels", most=MAX_NODES)
        for name in NETWORK_LEVELS
        if name in levels
    }
    # From the whole group inwards: each domain consists of whole domains of the next level.
    for (outer, larger), (inner, smaller) in pairwise([("the group", nodes), *sizes.items()]):
        if larger % smaller:
            raise FleetDescriptionRefused(
                f"{where}: the {larger} nodes of {outer} do not divide into a {inner} of {smaller} each; "
                f"let the nodes of {outer} be a multiple of {smaller}"
            )
    return sizes


def _parse_numa(text: object, *, chip: Chip, cards: int, where: str) -> tuple[Cards, ...]:
    if text is None:
        half = cards // 2
        whole = chip.kind is ChipKind.CPU or half < 2 or half % chip.aligned_to
        return () if whole else (tuple(range(half)), tuple(range(half, cards)))
    try:
        groups = parse_card_groups(str(text))
    except InvalidCardGroups as refusal:
        raise FleetDescriptionRefused(f"{where}: numa: {refusal}") from None
    if beyond := [card for group in groups for card in group if card >= cards]:
        raise FleetDescriptionRefused(
            f"{where}: numa names card {beyond[0]}; a node's last card is {cards - 1}"
        )
    return groups


def _rings_present(rings: tuple[Cards, ...], cards: int) -> tuple[Cards, ...]:
    """The rings, limited to the cards of the node."""
    cut = (tuple(card for card in ring if card < cards) for ring in rings)
    return tuple(ring for ring in cut if len(ring) > 1)


def _parse_labels(labels: object, *, where: str) -> Mapping[str, str]:
    if not isinstance(labels, Mapping) or not all(
        isinstance(value, str) for value in labels.values()
    ):
        raise FleetDescriptionRefused(f"{where}: labels are names and texts, got {labels!r}")
    return dict(labels)
