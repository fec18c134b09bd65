"""Chips and cards, named once for the whole product.

A *chip* is a model of accelerator, a *card* is one of them in a node. What a chip can do comes from
its plug-in (``controlplane.ports.chips``); this module only carries the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from controlplane.domain.resources import Bytes


class ChipKind(StrEnum):
    """The family that people mean when they say "on the GPU" or "on the NPU"."""

    CPU = "cpu"
    GPU = "gpu"
    NPU = "npu"


class CardState(StrEnum):
    """Whether new work may be placed on a card. Faults live beside it, in ``apps.monitoring``."""

    USABLE = "usable"
    NO_NEW_WORK = "no_new_work"
    ISOLATED = "isolated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One model of accelerator."""

    #: The stable name, for example ``ascend-910b3`` or ``cpu``.
    name: str
    #: The maker, as in the folder of its plug-in.
    vendor: str
    kind: ChipKind
    #: Memory of one card; 0 where the card has none of its own (``cpu``).
    memory: Bytes
    #: The ``torch.device`` type that programs see.
    torch_device: str
    #: The variable that restricts a process to its cards; empty where there is none.
    visible_devices_variable: str = ""
    #: Sizes of a request on one node that the hardware allows; empty means any.
    legal_request_sizes: tuple[int, ...] = ()
