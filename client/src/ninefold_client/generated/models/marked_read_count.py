from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="MarkedReadCount")


@_attrs_define
class MarkedReadCount:
    """MarkedReadCount"""

    marked: int

    def to_dict(self) -> dict[str, Any]:
        marked = self.marked

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "marked": marked,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        marked = d.pop("marked")

        marked_read_count = cls(
            marked=marked,
        )

        return marked_read_count
