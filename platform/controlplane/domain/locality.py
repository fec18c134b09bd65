"""Where the cards of a node are attached, as its agent reads it from the host, and what follows for placement.

::

    agent ──ninefold_agent_card_info──▶ CardLocality ──▶ Node.locality ──▶ NUMA and NIC groups ──▶ Geometry

An operator's label on the node (``ninefold.io/numa``, ``ninefold.io/nics``) overrides the groups.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.domain.geometry import Group

#: The information series by which an agent publishes it.
SERIES = "ninefold_agent_card_info"
_INDEX = re.compile(r"[0-9]{1,3}")
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NUMA_NODE = re.compile(r"[0-9]{1,4}")
_NIC = re.compile(r"[A-Za-z0-9_.-]{1,32}")
_MOST_NICS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLocality:
    """The place of one card in its host."""

    #: Of the card in its node.
    index: int
    pci_address: str
    #: None where the host does not know it.
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
    def of_document(cls, index: str, document: Mapping[str, Any]) -> CardLocality:
        """The inverse of ``document``."""
        return cls(
            index=int(index),
            pci_address=document["pci_address"],
            numa_node=document["numa_node"],
            nics_same_switch=tuple(document["nics_same_switch"]),
            nics_same_numa=tuple(document["nics_same_numa"]),
        )


def locality_in(labels: Mapping[str, str]) -> CardLocality | None:
    """What the labels of one series say of a card; None where one of them cannot be."""
    index, address = labels.get("card", ""), labels.get("pci_address", "")
    numa_node = labels.get("numa_node", "")
    nics = [_nics_in(labels.get(name, "")) for name in ("nics_same_switch", "nics_same_numa")]
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
    """Cards by NUMA node; empty unless there are at least two, since one says nothing about a choice."""
    return _groups((card, card.numa_node) for card in cards if card.numa_node is not None)


def nic_groups(cards: Iterable[CardLocality]) -> tuple[Group, ...]:
    """Cards on the same PCI switch as the same network adapters; empty unless there are at least two groups."""
    return _groups((card, card.nics_same_switch) for card in cards if card.nics_same_switch)


def _groups(keyed: Iterable[tuple[CardLocality, Hashable]]) -> tuple[Group, ...]:
    groups: dict[Hashable, list[int]] = {}
    for card, key in keyed:
        groups.setdefault(key, []).append(card.index)
    found = tuple(sorted(tuple(sorted(indices)) for indices in groups.values()))
    return found if len(found) > 1 else ()


def _nics_in(text: str) -> tuple[str, ...] | None:
    names = tuple(text.split(",")) if text else ()
    fine = len(names) <= _MOST_NICS and all(_NIC.fullmatch(name) for name in names)
    return names if fine else None
