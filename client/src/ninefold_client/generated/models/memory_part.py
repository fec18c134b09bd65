from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="MemoryPart")


@_attrs_define
class MemoryPart:
    """MemoryPart"""

    name: str
    bytes_: int

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        bytes_ = self.bytes_

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "bytes": bytes_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        bytes_ = d.pop("bytes")

        memory_part = cls(
            name=name,
            bytes_=bytes_,
        )

        return memory_part
