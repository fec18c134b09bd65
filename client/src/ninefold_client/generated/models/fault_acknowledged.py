from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="FaultAcknowledged")


@_attrs_define
class FaultAcknowledged:
    """FaultAcknowledged"""

    acknowledged: int

    def to_dict(self) -> dict[str, Any]:
        acknowledged = self.acknowledged

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "acknowledged": acknowledged,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        acknowledged = d.pop("acknowledged")

        fault_acknowledged = cls(
            acknowledged=acknowledged,
        )

        return fault_acknowledged
