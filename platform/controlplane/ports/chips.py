"""The chip port: what one vendor's accelerators are, and how to work with them. One plug-in per vendor.

A package declares an entry point in ``ninefold.chips``; nothing inside the product changes. Everything that
tells vendors apart is here: the core, the engines and the pages read these values and never a vendor's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.topology import Geometry
from controlplane.domain.faults import FaultMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One figure of a card, as an exporter prints it."""

    #: Names of the exporter's series; several are added up.
    names: tuple[str, ...]
    #: Multiplies what is printed, to bytes, watts, degrees Celsius or percent.
    scale: float = 1.0
    #: Labels that a series must bear, for example ``{"type": "vram"}``.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Numbers that are printed where the figure is not known, for example -1.
    absent: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """Where a card's figures come from.

    Keys of ``series`` are the values of ``controlplane.domain.telemetry.Metric``, and ``fault``: a code of the
    vendor's fault map as a number, 0 where there is none; of several series each may bear one.
    """

    name: str
    port: int | None = None
    #: The label that tells cards apart wherever they are: a serial number, or what serves as one.
    card_label: str = ""
    #: The label with the card's place in its node, as the cluster counts cards; empty where there is none.
    index_label: str = ""
    #: The label with the node's name; empty where a text is about the node that it was read from.
    node_label: str = ""
    #: A series that bears this label is of a slice of the card, and is passed over.
    slice_label: str = ""
    series: Mapping[str, Series] = field(default_factory=dict)
    #: How the fault map writes the codes that are printed as numbers: 10, or 16 for eight digits.
    fault_base: int = 10
    #: False where the names were not read in a public source.
    verified: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Collectives:
    """How cards of one vendor talk to each other."""

    #: The library, for example ``NCCL`` or ``HCCL``.
    library: str
    #: The name of torch's backend for it; empty where unknown.
    torch_backend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodExtras:
    """What pods with a vendor's cards need beside the extended resource.

    Texts may hold ``{name}`` (of the Launch); labels and annotations ``{family}`` and what names devices
    ``{resource}`` and ``{device}`` (the resource without its domain), which ``of`` fills in. Nothing of it was
    run on such a chip unless the vendor's profile says so.
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
    #: Chip → what ``{family}`` stands for, where the maker's programs tell families of chips apart.
    families: Mapping[str, str] = field(default_factory=dict)

    def of(self, chip: Chip) -> PodExtras:
        """What pods with cards of that chip need; labels that no family is known for are left out.

        Which slice a pod gets only the device plug-in knows, so no annotation names one.
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

    def of_resource(self, resource: str) -> PodExtras:
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
    #: What people call the maker.
    title: str
    collectives: Collectives | None = None
    #: The build of torch that drives its chips: ``cpu``, ``cuda``, or the name of one that the maker publishes,
    #: such as ``ROCm``; empty where nobody says.
    torch_build: str = ""
    #: The package that brings the device to such a build, such as ``torch_musa``; empty where none is needed.
    torch_plugin: str = ""
    #: Scripts of its images that set what its libraries need, by absolute path; a shell that nobody logs in to
    #: does not read them.
    setup_scripts: tuple[str, ...] = ()
    #: Extended resources that stand for its cards or slices; regular expressions.
    resource_patterns: tuple[str, ...] = ()
    #: Labels or annotations of a node whose value is a name or alias of its chip, the best first.
    model_labels: tuple[str, ...] = ()
    #: The one that says how much memory a card has, in MiB unless it ends in ``G``; empty where there is none.
    memory_label: str = ""
    #: The one that counts the physical cards of a node, also those divided into slices; empty where none does.
    count_label: str = ""
    #: The one that says how the cards hang together, and what its values mean.
    layout_label: str = ""
    layouts: Mapping[str, Geometry] = field(default_factory=dict)
    #: The variable that a device plug-in or container runtime sets; empty where there is none.
    runtime_variable: str = ""
    #: The value of ``runtime_variable`` by which a container gets none of its cards.
    no_devices: str = ""
    #: Further variables that its container runtime obeys; regular expressions. No job may set them.
    reserved_variables: tuple[str, ...] = ()
    pods: PodExtras = field(default_factory=PodExtras)
    exporter: Exporter | None = None
    faults: FaultMap = field(default_factory=FaultMap)
    #: Images that run an engine on these chips, by engine's name; they add to those that the engine knows.
    images: Mapping[str, str] = field(default_factory=dict)
    #: False until somebody ran the product's own work on one of these cards.
    run_on_hardware: bool = False
    #: Where the names above were read.
    sources: tuple[str, ...] = ()


@runtime_checkable
class ChipPlugin(Protocol):
    @property
    def vendor(self) -> str: ...

    def profile(self) -> VendorProfile: ...

    def chips(self) -> tuple[Chip, ...]:
        """Every chip of this vendor that the product knows."""
        ...

    def environment(self, chip: Chip, *, cards: tuple[int, ...]) -> Mapping[str, str]:
        """Variables that restrict a process to those cards of its node, and that its libraries need."""
        ...
