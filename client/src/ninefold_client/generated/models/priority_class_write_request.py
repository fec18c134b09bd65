from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PriorityClassWriteRequest")


@_attrs_define
class PriorityClassWriteRequest:
    """PriorityClassWriteRequest"""

    name: str
    value: int
    description: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        value = self.value

        description = self.description

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "value": value,
            }
        )
        if description is not UNSET:
            field_dict["description"] = description

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        value = d.pop("value")

        description = d.pop("description", UNSET)

        priority_class_write_request = cls(
            name=name,
            value=value,
            description=description,
        )

        return priority_class_write_request
