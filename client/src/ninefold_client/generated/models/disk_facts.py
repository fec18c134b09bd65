from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="DiskFacts")


@_attrs_define
class DiskFacts:
    """DiskFacts"""

    free_bytes: int
    bytes_: int

    def to_dict(self) -> dict[str, Any]:
        free_bytes = self.free_bytes

        bytes_ = self.bytes_

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "free_bytes": free_bytes,
                "bytes": bytes_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        free_bytes = d.pop("free_bytes")

        bytes_ = d.pop("bytes")

        disk_facts = cls(
            free_bytes=free_bytes,
            bytes_=bytes_,
        )

        return disk_facts
