from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="BurnInsRequested")


@_attrs_define
class BurnInsRequested:
    """BurnInsRequested"""

    asked: int

    def to_dict(self) -> dict[str, Any]:
        asked = self.asked

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "asked": asked,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        asked = d.pop("asked")

        burn_ins_requested = cls(
            asked=asked,
        )

        return burn_ins_requested
