"""The chip port: what one vendor's accelerators are, and which cards a node has. One plug-in per vendor.

A package declares an entry point in ``ninefold.chips``; nothing inside the product changes. Everything that
differs between vendors is here: the core, the engines and the pages read these values and never a vendor's
name.

``discover`` reads the cards of a node from its labels and resources. What the node says goes before the
default of its chip. NUMA and NIC groups come from the node's agent (``controlplane.domain.common.topology``). A
label or annotation of the node overrides both (groups as in ``controlplane.domain.common.topology.groups_of``)::

    ninefold.io/rings = 0-3_4-7      cards with a direct link
    ninefold.io/numa  = 0-3_4-7      cards beside the same memory of the host
    ninefold.io/nics  = 0-1_2-3      cards on the same PCI switch as the same network adapters
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.resources import MIB, Bytes
from controlplane.domain.common.topology import Geometry, parse_card_groups
from controlplane.domain.health.faults import FaultMap


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterSeries:
    """One metric of a card, as an exporter prints it."""

    #: Names of the exporter's series; several are added up.
    names: tuple[str, ...]
    #: Multiplies what is printed, to bytes, watts, degrees Celsius or percent.
    scale: float = 1.0
    #: Labels that a series must bear, for example ``{"type": "vram"}``.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Numbers that are printed where the metric is unknown, for example -1.
    absent: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """The exporter of a vendor's card metrics.

    Keys of ``series`` are the values of ``controlplane.domain.telemetry.metrics.Metric``, and ``fault``: a code
    of the vendor's fault map as a number, 0 where there is none; of several series each may bear one.
    """

    name: str
    port: int | None = None
    #: The label that identifies a card across nodes: a serial number, or what serves as one.
    card_label: str = ""
    #: The label with the card's place in its node, as the cluster counts cards; empty where there is none.
    index_label: str = ""
    #: The label with the node's name; empty where a text is about the node that it was read from.
    node_label: str = ""
    #: A series that bears this label is of a slice of the card, and is passed over.
    slice_label: str = ""
    series: Mapping[str, ExporterSeries] = field(default_factory=dict)
    #: How the fault map writes the codes that are printed as numbers: 10, or 16 for eight digits.
    fault_base: int = 10
    #: False where the names were not read in a public source.
    verified: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveSettings:
    """How cards of one vendor talk to each other."""

    #: The library, for example ``NCCL`` or ``HCCL``.
    library: str
    #: The name of torch's backend for it; empty where unknown.
    torch_backend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorPodSettings:
    """What pods with a vendor's cards need beside the extended resource.

    Texts may hold ``{name}`` (of the Launch); labels and annotations ``{family}`` and what names devices
    ``{resource}`` and ``{device}`` (the resource without its domain), which ``of`` fills in. Nothing of it was
    run on such a chip unless the vendor's profile allows it.
    """

    #: Labels of the pods and of what owns them.
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: The annotation in which the device plug-in reads which cards are meant; empty where it chooses itself.
    device_annotation: str = ""
    #: One device in it, with ``{index}``; several are joined by commas.
    device_name: str = ""
    #: Paths of the host that its driver needs in the container, read-only.
    host_paths: tuple[str, ...] = ()
    #: Ids of the groups that own the device files on the nodes; pods do not run as root.
    groups: tuple[int, ...] = ()
    #: Whether pods of one Launch on several nodes need the host's network (links of the cards are the host's).
    host_network_across_nodes: bool = False
    #: A ConfigMap that a controller of the vendor fills in: its name, and its first content by key.
    config_map: str = ""
    config_map_data: Mapping[str, str] = field(default_factory=dict)
    config_map_labels: Mapping[str, str] = field(default_factory=dict)
    #: Where pods find it.
    config_map_at: str = ""
    #: Chip → the value of ``{family}``, where the vendor's programs distinguish families of chips.
    families: Mapping[str, str] = field(default_factory=dict)

    def of(self, chip: Chip) -> VendorPodSettings:
        """What pods with cards of that chip need; labels that no family is known for are left out.

        Only the device plug-in knows which slice a pod gets, so no annotation names one.
        """
        family = self.families.get(chip.slice_of or chip.name, "")

        def known(texts: Mapping[str, str]) -> dict[str, str]:
            return {
                key: text.replace("{family}", family)
                for key, text in texts.items()
                if family or "{family}" not in text
            }

        extras = self.of_resource(chip.resource)
        return replace(
            extras,
            device_annotation="" if chip.slice_of else extras.device_annotation,
            labels=known(self.labels),
            annotations=known(self.annotations),
            config_map_labels=known(self.config_map_labels),
        )

    def of_resource(self, resource: str) -> VendorPodSettings:
        """The same, with how devices of that extended resource are called."""
        values = {"{resource}": resource, "{device}": resource.rpartition("/")[2]}
        annotation, name = self.device_annotation, self.device_name
        for mark, value in values.items():
            annotation, name = annotation.replace(mark, value), name.replace(mark, value)
        return replace(self, device_annotation=annotation, device_name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorProfile:
    """What all chips of a vendor have in common."""

    vendor: str
    #: Display name of the vendor.
    title: str
    collectives: CollectiveSettings | None = None
    #: The build of torch that drives its chips: ``cpu``, ``cuda``, or the name of one that the vendor publishes,
    #: such as ``ROCm``; empty where unknown.
    torch_build: str = ""
    #: The package that brings the device to such a build, such as ``torch_musa``; empty where none is needed.
    torch_plugin: str = ""
    #: Scripts of its images that set what its libraries need, by absolute path; a non-login shell
    #: does not read them.
    setup_scripts: tuple[str, ...] = ()
    #: Extended resources of its cards or slices; regular expressions.
    resource_patterns: tuple[str, ...] = ()
    #: Labels or annotations of a node whose value is a name or alias of its chip, the best first.
    model_labels: tuple[str, ...] = ()
    #: The label with the memory of a card, in MiB unless it ends in ``G``; empty where there is none.
    memory_label: str = ""
    #: The one that counts the physical cards of a node, also those divided into slices; empty where none does.
    count_label: str = ""
    #: The label with the layout of the cards, and what its values mean.
    layout_label: str = ""
    layouts: Mapping[str, Geometry] = field(default_factory=dict)
    #: The variable that a device plug-in or container runtime sets; empty where there is none.
    runtime_variable: str = ""
    #: The value of ``runtime_variable`` by which a container gets none of its cards.
    no_devices: str = ""
    #: Further variables that its container runtime obeys; regular expressions. No job may set them.
    reserved_variables: tuple[str, ...] = ()
    pods: VendorPodSettings = field(default_factory=VendorPodSettings)
    exporter: Exporter | None = None
    faults: FaultMap = field(default_factory=FaultMap)
    #: Images that run an engine on these chips, by engine's name; in addition to the engine's own.
    images: Mapping[str, str] = field(default_factory=dict)
    #: False until the product has run workloads on one of these cards.
    run_on_hardware: bool = False
    #: Where the names above were read.
    sources: tuple[str, ...] = ()


@runtime_checkable
class ChipPlugin(Protocol):
    @property
    def vendor(self) -> str: ...

    def profile(self) -> VendorProfile: ...

    def chips(self) -> tuple[Chip, ...]:
        """Every supported chip of this vendor."""

    def environment(self, chip: Chip, *, cards: tuple[int, ...]) -> Mapping[str, str]:
        """Variables that restrict a process to those cards of its node, and that its libraries need."""


RINGS = "ninefold.io/rings"
NUMA = "ninefold.io/numa"
NICS = "ninefold.io/nics"
#: Labels and annotations that hold groups of cards.
GROUP_LABELS = (RINGS, NUMA, NICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredCards:
    """The cards of one kind on a node."""

    #: Their extended resource.
    resource: str
    #: The one of whole cards, where these are slices; otherwise the same.
    card_resource: str
    #: How many of them workloads can have.
    count: int
    #: None where no plug-in knows which chip of the vendor it is.
    chip: Chip | None
    vendor: str
    #: Of one card: from the node, else from the chip; 0 if neither is known.
    memory: Bytes
    geometry: Geometry


def discover_cards(
    plugins: Iterable[ChipPlugin],
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    allocatable: Mapping[str, str],
) -> tuple[DiscoveredCards, ...]:
    """The cards of a node, by resource; what no plug-in knows is left out.

    :raises MalformedGroups: if an operator's word on rings or NUMA nodes cannot be read.
    """
    node_metadata = {**labels, **annotations}
    found = []
    for plugin in plugins:
        profile, chips = plugin.profile(), plugin.chips()
        for resource, count in _accelerator_resource_counts(profile, chips, allocatable):
            chip = chip_of_node_labels(profile, chips, node_metadata, resource=resource)
            default = chip.geometry if chip else Geometry()
            parent = next((one for one in chips if chip and one.name == chip.slice_of), None)
            whole = any(one.resource == resource and not one.slice_of for one in chips)
            memory = chip.memory if chip and (whole or chip.slice_of) else Bytes(0)
            found.append(
                DiscoveredCards(
                    resource=resource,
                    card_resource=parent.resource if parent else resource,
                    count=count,
                    chip=chip,
                    vendor=profile.vendor,
                    memory=(_card_memory(profile, node_metadata) if whole else Bytes(0)) or memory,
                    geometry=_geometry_of_node_metadata(profile, default, node_metadata)
                    if whole
                    else default,
                )
            )
    return tuple(sorted(found, key=lambda cards: cards.resource))


def chip_geometry_on_node(
    plugin: ChipPlugin, chip: Chip, node_metadata: Mapping[str, str]
) -> Geometry:
    """The rules of that chip on a node with those labels.

    :raises MalformedGroups: if an operator's word on rings or NUMA nodes cannot be read.
    """
    return (
        chip.geometry
        if chip.slice_of
        else _geometry_of_node_metadata(plugin.profile(), chip.geometry, node_metadata)
    )


def chip_of_node_labels(
    profile: VendorProfile,
    chips: tuple[Chip, ...],
    node_metadata: Mapping[str, str],
    *,
    resource: str = "",
) -> Chip | None:
    """The chip that the node's labels name; without them, the only one that the resource can be.

    Labels name whole cards: a slice resource denotes slices of the chip that they name.
    """
    slices = [chip for chip in chips if chip.slice_of and chip.resource == resource]
    chips = tuple(chip for chip in chips if not chip.slice_of)
    if slices:
        parent = chip_of_node_labels(profile, chips, node_metadata)
        return next((one for one in slices if parent and one.slice_of == parent.name), None)
    for label in profile.model_labels:
        if name := node_metadata.get(label, "").strip().lower():
            named = [chip for chip in chips if name == chip.name or name in chip.aliases]
            return named[0] if named else None
    labelled = [
        chip
        for chip in chips
        if chip.node_labels
        and all(node_metadata.get(name) == value for name, value in chip.node_labels.items())
    ]
    fitting = [chip for chip in labelled or chips if resource in ("", chip.resource)]
    return fitting[0] if len(fitting) == 1 else None


def _accelerator_resource_counts(
    profile: VendorProfile, chips: tuple[Chip, ...], allocatable: Mapping[str, str]
) -> Iterator[tuple[str, int]]:
    for resource, amount in allocatable.items():
        slices = any(re.fullmatch(pattern, resource) for pattern in profile.resource_patterns)
        known = any(chip.resource == resource for chip in chips)
        # A resource of cards is a plain number; it is "0" after the device plug-in was removed.
        if (slices or known) and amount.isdecimal() and int(amount):
            yield resource, int(amount)


def _card_memory(profile: VendorProfile, node_metadata: Mapping[str, str]) -> Bytes:
    """Memory of one card from the node's label, in MiB with or without its unit."""
    text = node_metadata.get(profile.memory_label, "") if profile.memory_label else ""
    found = re.fullmatch(r"(\d{1,9})(G|Gi|GB|M|Mi|MB|)", text.strip())
    if found is None:
        return Bytes(0)
    return Bytes(int(found[1]) * (1024 if found[2].startswith("G") else 1) * MIB)


def _geometry_of_node_metadata(
    profile: VendorProfile, default: Geometry, node_metadata: Mapping[str, str]
) -> Geometry:
    layout = (
        profile.layouts.get(node_metadata.get(profile.layout_label, "")) if node_metadata else None
    )
    geometry = layout or default
    if text := node_metadata.get(RINGS):
        geometry = replace(geometry, rings=parse_card_groups(text))
    if text := node_metadata.get(NUMA):
        geometry = replace(geometry, numa=parse_card_groups(text))
    if text := node_metadata.get(NICS):
        geometry = replace(geometry, nics=parse_card_groups(text))
    return geometry
