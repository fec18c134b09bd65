"""Topology: which cards of a node belong together, where they are attached, and where a node is in the network.

::

    ring 0      ring 1            pairs (aligned_to = 2)
    0─1─2─3     4─5─6─7           (0 1) (2 3) (4 5) (6 7)

A *ring* is a group of cards with a direct link: a request that fits into one ring stays inside it. A larger
request fills whole rings or, where the hardware requires it (``split_evenly``), takes the same positions of
each. Cards of a pair are allocated together: whole groups first, and a single card comes from a group that is
already broken. NUMA nodes are a preference, not a rule; among the cards of one, those next to the same network
adapters are taken together.

The agent of a node reads where cards are attached from the host::

    agent ──ninefold_agent_card_info──▶ CardLocality ──▶ Node.locality ──▶ NUMA and NIC groups ──▶ Geometry

A label on the node (``ninefold.io/numa``, ``ninefold.io/nics``) overrides the groups. Labels with the prefix
``topology.ninefold.dev/`` say in which network domains the node is.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from controlplane.domain.common.reasons import ReasonedValueError

#: Indices of cards.
Group = tuple[int, ...]

_SPAN = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")
_MOST_CARDS = 1024


class InvalidCardGroups(ReasonedValueError):
    """Text that names no groups of cards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """The rules of one kind of card on one node."""

    #: Sizes of a request on the node that the hardware allows, ascending; empty means any.
    sizes: tuple[int, ...] = ()
    rings: tuple[Group, ...] = ()
    #: Cards belong together in aligned groups of so many.
    aligned_to: int = 1
    #: A request larger than a ring takes the same positions in each of several rings.
    split_evenly: bool = False
    #: Cards next to the same memory of the host.
    numa: tuple[Group, ...] = ()
    #: Cards on the same PCI switch as the same network adapters.
    nics: tuple[Group, ...] = ()

    def allows(self, count: int) -> bool:
        """Whether the hardware gives out so many cards of a node at all."""
        return not count or not self.sizes or count in self.sizes

    @property
    def plain(self) -> bool:
        """Any card is as good as any other."""
        return not (self.sizes or self.rings or self.numa or self.nics or self.aligned_to > 1)


def choose_cards(free: Sequence[int], count: int, geometry: Geometry) -> Group | None:
    """Return the indices of the cards that a request of ``count`` gets, ascending; None if none fit.

    The same free cards always give the same choice.
    """
    if count > len(free) or not geometry.allows(count):
        return None
    options = [
        chosen
        for pool in _candidate_pools(sorted(free), count, geometry)
        if (chosen := _take_aligned_groups(pool, count, geometry)) is not None
    ]
    # The pools come in order of preference; a choice beside one piece of memory goes before.
    best = min(options, key=lambda chosen: _numa_node_count(chosen, geometry.numa), default=None)
    return None if best is None else tuple(sorted(best))


def nearest_size(sizes: Sequence[int], count: int) -> int:
    """The nearest allowed size: the next larger one, or the largest of all."""
    return min((size for size in sizes if size >= count), default=max(sizes))


def parse_card_groups(text: str) -> tuple[Group, ...]:
    """``0-3_4-7`` → ((0, 1, 2, 3), (4, 5, 6, 7)); groups are parted by ``_``, cards by ``.``.

    :raises MalformedGroups: if it is anything else, or names a card twice.
    """
    groups = tuple(tuple(_parse_card_spans(part, text)) for part in text.split("_"))
    named = [card for group in groups for card in group]
    if len(set(named)) < len(named):
        raise InvalidCardGroups(
            "topology.card_groups.duplicate_card",
            "{groups} contains the same card more than once; each card belongs to one group",
            groups=repr(text),
        )
    return groups


def format_card_groups(groups: Sequence[Group]) -> str:
    """The groups as ``parse_card_groups`` reads them."""
    return "_".join(".".join(map(str, group)) for group in groups)


def _parse_card_spans(part: str, text: str) -> Iterator[int]:
    for span in part.split("."):
        found = _SPAN.fullmatch(span)
        if found is None:
            raise InvalidCardGroups(
                "topology.card_groups.invalid",
                "{groups} is not a list of card groups; write them like 0-3_4-7",
                groups=repr(text),
            )
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last < _MOST_CARDS:
            raise InvalidCardGroups(
                "topology.card_groups.invalid_range",
                "{range} in {groups} is not a range of cards; the first index must be at "
                "most the last, and the last below {limit}",
                range=repr(span),
                groups=repr(text),
                limit=_MOST_CARDS,
            )
        yield from range(first, last + 1)


def _candidate_pools(free: list[int], count: int, geometry: Geometry) -> Iterator[list[int]]:
    """Sets of free cards for the request, preferred first."""
    if not geometry.rings:
        yield free
        return
    rings = [*geometry.rings]
    outside = set(free) - {card for ring in rings for card in ring}
    if outside:
        rings.append(tuple(sorted(outside)))
    left = {ring: [card for card in ring if card in set(free)] for ring in rings}
    if count <= max(map(len, geometry.rings)):
        # The fullest ring that still has room keeps the others whole for larger requests.
        yield from sorted((pool for pool in left.values() if len(pool) >= count), key=len)
    elif geometry.split_evenly:
        yield from _even_ring_positions(geometry.rings, left, count)
    else:
        # Whole rings first, so that as few as possible are touched.
        pool: list[int] = []
        for cards in sorted(left.values(), key=len, reverse=True):
            pool.extend(cards)
            if len(pool) >= count:
                yield pool
                return


def _even_ring_positions(
    rings: tuple[Group, ...], left: dict[Group, list[int]], count: int
) -> Iterator[list[int]]:
    """The same positions of the fewest rings that can hold the request."""
    for touched in range(2, len(rings) + 1):
        each, rest = divmod(count, touched)
        if rest:
            continue
        for chosen in combinations(rings, touched):
            positions = [
                place
                for place in range(min(map(len, chosen)))
                if all(ring[place] in left[ring] for ring in chosen)
            ]
            if len(positions) >= each:
                yield [ring[place] for ring in chosen for place in positions[:each]]


def _take_aligned_groups(pool: list[int], count: int, geometry: Geometry) -> Group | None:
    """``count`` cards of the pool: whole aligned groups, and for what is over a broken one."""
    ordered = _group_by_locality(pool, count, geometry)
    if geometry.aligned_to == 1:
        return tuple(ordered[:count])
    groups: dict[int, list[int]] = {}
    for card in ordered:
        groups.setdefault(card // geometry.aligned_to, []).append(card)
    whole = [cards for cards in groups.values() if len(cards) == geometry.aligned_to]
    wanted, over = divmod(count, geometry.aligned_to)
    if len(whole) < wanted:
        return None
    chosen = [card for cards in whole[:wanted] for card in cards]
    broken = [card for cards in groups.values() if cards not in whole for card in cards]
    spare = [*broken, *(card for cards in whole[wanted:] for card in cards)]
    return (*chosen, *spare[:over]) if len(spare) >= over else None


def _group_by_locality(pool: list[int], count: int, geometry: Geometry) -> list[int]:
    """The pool with those cards in front that share memory of the host, and among them network adapters."""
    return _sort_by_distance(_sort_by_distance(pool, count, geometry.nics), count, geometry.numa)


def _sort_by_distance(pool: list[int], count: int, groups: tuple[Group, ...]) -> list[int]:
    """The pool group by group: the smallest that hold the request, then the largest; each keeps its order."""
    near = [[card for card in pool if card in group] for group in groups]
    fitting = sorted((cards for cards in near if len(cards) >= count), key=len)
    others = sorted((cards for cards in near if len(cards) < count), key=len, reverse=True)
    ordered = [card for cards in (*fitting, *others) for card in cards]
    return [*ordered, *(card for card in pool if card not in ordered)]


def _numa_node_count(cards: Group, numa: tuple[Group, ...]) -> int:
    """How many pieces of the host's memory they lie beside."""
    return sum(any(card in group for card in cards) for group in numa)


#: The information series by which an agent publishes it.
SERIES = "ninefold_agent_card_info"
_INDEX = re.compile(r"[0-9]{1,3}")
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NUMA_NODE = re.compile(r"[0-9]{1,4}")
_NIC = re.compile(r"[A-Za-z0-9_.-]{1,32}")
_MOST_NICS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLocality:
    """Where one card is attached in its host."""

    #: Of the card in its node.
    index: int
    pci_address: str
    #: None if the host does not report it.
    numa_node: int | None = None
    #: Network adapters below the same PCI root port.
    nics_same_switch: tuple[str, ...] = ()
    #: Further network adapters of the same NUMA node.
    nics_same_numa: tuple[str, ...] = ()

    @property
    def document(self) -> dict[str, object]:
        """As JSON stores it."""
        return {
            "pci_address": self.pci_address,
            "numa_node": self.numa_node,
            "nics_same_switch": list(self.nics_same_switch),
            "nics_same_numa": list(self.nics_same_numa),
        }

    @classmethod
    def from_document(cls, index: str, document: Mapping[str, Any]) -> CardLocality:
        """The inverse of ``document``."""
        return cls(
            index=int(index),
            pci_address=document["pci_address"],
            numa_node=document["numa_node"],
            nics_same_switch=tuple(document["nics_same_switch"]),
            nics_same_numa=tuple(document["nics_same_numa"]),
        )


def card_locality(labels: Mapping[str, str]) -> CardLocality | None:
    """The locality of a card from the labels of one series; None if one of them is invalid."""
    index, address = labels.get("card", ""), labels.get("pci_address", "")
    numa_node = labels.get("numa_node", "")
    nics = [
        _parse_nic_names(labels.get(name, "")) for name in ("nics_same_switch", "nics_same_numa")
    ]
    if not (_INDEX.fullmatch(index) and _ADDRESS.fullmatch(address)) or None in nics:
        return None
    if numa_node and not _NUMA_NODE.fullmatch(numa_node):
        return None
    return CardLocality(
        index=int(index),
        pci_address=address,
        numa_node=int(numa_node) if numa_node else None,
        nics_same_switch=nics[0] or (),
        nics_same_numa=nics[1] or (),
    )


def numa_groups(cards: Iterable[CardLocality]) -> tuple[Group, ...]:
    """Cards by NUMA node; empty unless there are at least two, since one gives no choice."""
    return _group_cards((card, card.numa_node) for card in cards if card.numa_node is not None)


def nic_groups(cards: Iterable[CardLocality]) -> tuple[Group, ...]:
    """Cards on the same PCI switch as the same network adapters; empty unless there are at least two groups."""
    return _group_cards((card, card.nics_same_switch) for card in cards if card.nics_same_switch)


def _group_cards(keyed: Iterable[tuple[CardLocality, Hashable]]) -> tuple[Group, ...]:
    groups: dict[Hashable, list[int]] = {}
    for card, key in keyed:
        groups.setdefault(key, []).append(card.index)
    found = tuple(sorted(tuple(sorted(indices)) for indices in groups.values()))
    return found if len(found) > 1 else ()


def _parse_nic_names(text: str) -> tuple[str, ...] | None:
    names = tuple(text.split(",")) if text else ()
    fine = len(names) <= _MOST_NICS and all(_NIC.fullmatch(name) for name in names)
    return names if fine else None


#: Levels, outermost first. A superpod shares memory, a spine and a leaf are switches, a rack is a place.
NETWORK_LEVELS = ("superpod", "spine", "leaf", "rack")
#: ``topology.ninefold.dev/leaf: l3``
TOPOLOGY_LABEL_PREFIX = "topology.ninefold.dev/"


def network_domains(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return the domain name by level, outermost first; levels without a label are absent."""
    return {
        level: labels[TOPOLOGY_LABEL_PREFIX + level]
        for level in NETWORK_LEVELS
        if TOPOLOGY_LABEL_PREFIX + level in labels
    }


def network_labels(domains: Mapping[str, str]) -> Mapping[str, str]:
    """Return the labels that ``network_domains`` reads as these domains."""
    return {TOPOLOGY_LABEL_PREFIX + level: name for level, name in domains.items()}
