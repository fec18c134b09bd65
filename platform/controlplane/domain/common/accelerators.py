"""Chips and cards, named once for the whole product.

A *chip* is a model of accelerator, a *card* is one of them in a node. The properties of a chip come from its
plug-in (``controlplane.ports.chips``); this module only defines the values. Unpublished properties are None or
empty: unknown values are not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from controlplane.domain.common.resources import Bytes
from controlplane.domain.common.spec_fields import FieldFinding, field_finding
from controlplane.domain.common.topology import Geometry, nearest_size


class ChipKind(StrEnum):
    """The family of a chip, as in "on the GPU" or "on the NPU"."""

    CPU = "cpu"
    GPU = "gpu"
    NPU = "npu"


class CardState(StrEnum):
    """Whether new work may be placed on a card. Faults live beside it, in ``apps.monitoring``."""

    USABLE = "usable"
    NO_NEW_WORK = "no_new_work"
    ISOLATED = "isolated"
    UNKNOWN = "unknown"


class Dtype(StrEnum):
    """A number format, by the name that torch gives it."""

    FLOAT32 = "float32"
    TFLOAT32 = "tfloat32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT8 = "float8"
    INT8 = "int8"
    INT4 = "int4"

    @property
    def bits(self) -> int:
        return _BITS[self]


_BITS: Mapping[Dtype, int] = {
    Dtype.FLOAT32: 32,
    Dtype.TFLOAT32: 32,
    Dtype.BFLOAT16: 16,
    Dtype.FLOAT16: 16,
    Dtype.FLOAT8: 8,
    Dtype.INT8: 8,
    Dtype.INT4: 4,
}


class ProfileConfidence(StrEnum):
    """Reliability of the values of a profile."""

    #: Read in the vendor's documentation or a public repository.
    VERIFIED = "verified"
    #: Some of them.
    PARTLY = "partly"
    #: None; names only.
    UNVERIFIED = "unverified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One model of accelerator."""

    #: The stable name, for example ``ascend-910b3`` or ``cpu``.
    name: str
    #: The vendor, as in the folder of its plug-in.
    vendor: str
    kind: ChipKind
    #: Display name, for example ``NVIDIA H800``; empty means the name.
    title: str = ""
    #: Memory of one card; 0 where the card has none of its own (``cpu``) or it is not published.
    memory: Bytes
    #: The ``torch.device`` type that programs see; empty where it is not known.
    torch_device: str
    #: The variable that restricts a process to its cards; empty where there is none.
    visible_devices_variable: str = ""
    #: Sizes of a request on one node that the hardware allows; empty means any.
    legal_request_sizes: tuple[int, ...] = ()
    #: Other names by which exporters, node labels and drivers call it, in lower case.
    aliases: frozenset[str] = frozenset()
    #: Bytes a second between a card and its own memory; None where not published.
    memory_bandwidth: float | None = None
    #: Bytes a second, in one direction, between two cards of a ring; None where not published.
    link_bandwidth: float | None = None
    #: Dense operations a second by number format, without sparsity; absent where not published.
    peak_rates: Mapping[Dtype, float] = field(default_factory=dict)
    #: Cards of a usual node; 0 where that varies.
    cards_per_node: int = 0
    #: Cards of a usual node that share a direct link, by index. Data of the node itself goes before.
    rings: tuple[tuple[int, ...], ...] = ()
    #: Size of aligned groups in which cards are allocated if more than one is requested (dies of a pair).
    aligned_to: int = 1
    #: A request that is larger than a ring takes the same positions in each of several rings.
    split_evenly: bool = False
    #: The extended resource by which Kubernetes counts its cards; empty where there is none.
    resource: str = ""
    #: The chip of which it is a slice (MIG, vNPU), and the profile of the slice; empty for a whole card.
    slice_of: str = ""
    slice_profile: str = ""
    #: Labels of nodes that bear it: name → the value that means this chip.
    node_labels: Mapping[str, str] = field(default_factory=dict)
    confidence: ProfileConfidence = ProfileConfidence.VERIFIED
    #: Names of fields that no document of the vendor confirms, such as ``memory_bandwidth``.
    unverified: frozenset[str] = frozenset()
    #: Sources of the values.
    sources: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.title or self.name

    @property
    def geometry(self) -> Geometry:
        """The rules of a usual node of it."""
        return Geometry(
            sizes=self.legal_request_sizes,
            rings=self.rings,
            aligned_to=self.aligned_to,
            split_evenly=self.split_evenly,
        )


def check_cards_per_node(chip: Chip, cards: int) -> FieldFinding | None:
    """What is wrong with asking for so many cards of one node; None if the hardware gives them out."""
    sizes = chip.legal_request_sizes
    if chip.geometry.allows(cards):
        return None
    allowed = ", ".join(map(str, sizes))
    return field_finding(
        "cards",
        "spec.cards.unsupported_size",
        "{cards} cards of {chip} cannot be allocated on one node, which supports "
        "{sizes}; request {nearest}",
        cards=cards,
        chip=chip.name,
        sizes=allowed,
        nearest=nearest_size(sizes, cards),
    )
