"""Which cards a node has, read from what its cluster says of it: pure functions over labels and resources.

What the node says goes before what is usual for its chip. NUMA and NIC groups come from the node's agent
(``controlplane.domain.common.topology``). A label or annotation of the node overrides both (groups as in
``controlplane.domain.common.topology.groups_of``)::

    ninefold.io/rings = 0-3_4-7      cards with a direct link
    ninefold.io/numa  = 0-3_4-7      cards beside the same memory of the host
    ninefold.io/nics  = 0-1_2-3      cards on the same PCI switch as the same network adapters
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.resources import MIB, Bytes
from controlplane.domain.common.topology import Geometry, parse_card_groups
from controlplane.ports.chips import ChipPlugin, VendorProfile

RINGS = "ninefold.io/rings"
NUMA = "ninefold.io/numa"
NICS = "ninefold.io/nics"
#: Labels and annotations that hold groups of cards.
GROUP_LABELS = (RINGS, NUMA, NICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCards:
    """The cards of one kind on a node."""

    #: The extended resource that stands for them.
    resource: str
    #: The one of whole cards, where these are slices; otherwise the same.
    card_resource: str
    #: How many of them workloads can have.
    count: int
    #: None where no plug-in knows which chip of the vendor it is.
    chip: Chip | None
    vendor: str
    #: Of one card; what the node says, else what is known of the chip; 0 where neither does.
    memory: Bytes
    geometry: Geometry


def discover(
    plugins: Iterable[ChipPlugin],
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    allocatable: Mapping[str, str],
) -> tuple[FoundCards, ...]:
    """The cards of a node, by resource; what no plug-in knows is left out.

    :raises MalformedGroups: if an operator's word on rings or NUMA nodes cannot be read.
    """
    said = {**labels, **annotations}
    found = []
    for plugin in plugins:
        profile, chips = plugin.profile(), plugin.chips()
        for resource, count in _resources(profile, chips, allocatable):
            chip = chip_on(profile, chips, said, resource=resource)
            usual = chip.geometry if chip else Geometry()
            parent = next((one for one in chips if chip and one.name == chip.slice_of), None)
            whole = any(one.resource == resource and not one.slice_of for one in chips)
            memory = chip.memory if chip and (whole or chip.slice_of) else Bytes(0)
            found.append(
                FoundCards(
                    resource=resource,
                    card_resource=parent.resource if parent else resource,
                    count=count,
                    chip=chip,
                    vendor=profile.vendor,
                    memory=(_memory(profile, said) if whole else Bytes(0)) or memory,
                    geometry=_geometry(profile, usual, said) if whole else usual,
                )
            )
    return tuple(sorted(found, key=lambda cards: cards.resource))


def geometry_on(plugin: ChipPlugin, chip: Chip, said: Mapping[str, str]) -> Geometry:
    """The rules of that chip on a node with those labels.

    :raises MalformedGroups: if an operator's word on rings or NUMA nodes cannot be read.
    """
    return chip.geometry if chip.slice_of else _geometry(plugin.profile(), chip.geometry, said)


def chip_on(
    profile: VendorProfile, chips: tuple[Chip, ...], said: Mapping[str, str], *, resource: str = ""
) -> Chip | None:
    """The chip that the node's labels name; without them, the only one that the resource stands for.

    Labels name whole cards: a resource of slices stands for the slices of the chip that they name.
    """
    slices = [chip for chip in chips if chip.slice_of and chip.resource == resource]
    chips = tuple(chip for chip in chips if not chip.slice_of)
    if slices:
        parent = chip_on(profile, chips, said)
        return next((one for one in slices if parent and one.slice_of == parent.name), None)
    for label in profile.model_labels:
        if name := said.get(label, "").strip().lower():
            named = [chip for chip in chips if name == chip.name or name in chip.aliases]
            return named[0] if named else None
    labelled = [
        chip
        for chip in chips
        if chip.node_labels
        and all(said.get(name) == value for name, value in chip.node_labels.items())
    ]
    fitting = [chip for chip in labelled or chips if resource in ("", chip.resource)]
    return fitting[0] if len(fitting) == 1 else None


def _resources(
    profile: VendorProfile, chips: tuple[Chip, ...], allocatable: Mapping[str, str]
) -> Iterator[tuple[str, int]]:
    for resource, amount in allocatable.items():
        slices = any(re.fullmatch(pattern, resource) for pattern in profile.resource_patterns)
        known = any(chip.resource == resource for chip in chips)
        # A resource of cards is a plain number; "0" stands where the device plug-in is gone.
        if (slices or known) and amount.isdecimal() and int(amount):
            yield resource, int(amount)


def _memory(profile: VendorProfile, said: Mapping[str, str]) -> Bytes:
    """What the node says of one card, in MiB with or without its unit."""
    text = said.get(profile.memory_label, "") if profile.memory_label else ""
    found = re.fullmatch(r"(\d{1,9})(G|Gi|GB|M|Mi|MB|)", text.strip())
    if found is None:
        return Bytes(0)
    return Bytes(int(found[1]) * (1024 if found[2].startswith("G") else 1) * MIB)


def _geometry(profile: VendorProfile, usual: Geometry, said: Mapping[str, str]) -> Geometry:
    layout = profile.layouts.get(said.get(profile.layout_label, "")) if said else None
    geometry = layout or usual
    if text := said.get(RINGS):
        geometry = replace(geometry, rings=parse_card_groups(text))
    if text := said.get(NUMA):
        geometry = replace(geometry, numa=parse_card_groups(text))
    if text := said.get(NICS):
        geometry = replace(geometry, nics=parse_card_groups(text))
    return geometry
