from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="CardLocality")


@_attrs_define
class CardLocality:
    """CardLocality"""

    pci_address: str
    numa_node: int | None
    nics_same_switch: list[str]
    nics_same_numa: list[str]

    def to_dict(self) -> dict[str, Any]:
        pci_address = self.pci_address

        numa_node: int | None
        numa_node = self.numa_node

        nics_same_switch = self.nics_same_switch

        nics_same_numa = self.nics_same_numa

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "pci_address": pci_address,
                "numa_node": numa_node,
                "nics_same_switch": nics_same_switch,
                "nics_same_numa": nics_same_numa,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        pci_address = d.pop("pci_address")

        def _parse_numa_node(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        numa_node = _parse_numa_node(d.pop("numa_node"))

        nics_same_switch = cast(list[str], d.pop("nics_same_switch"))

        nics_same_numa = cast(list[str], d.pop("nics_same_numa"))

        card_locality = cls(
            pci_address=pci_address,
            numa_node=numa_node,
            nics_same_switch=nics_same_switch,
            nics_same_numa=nics_same_numa,
        )

        return card_locality
