from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PatchedPriorityClassWriteRequest")


@_attrs_define
class PatchedPriorityClassWriteRequest:
    """PatchedPriorityClassWriteRequest"""

    name: str | Unset = UNSET
    value: int | Unset = UNSET
    description: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        value = self.value

        description = self.description

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if name is not UNSET:
            field_dict["name"] = name
        if value is not UNSET:
            field_dict["value"] = value
        if description is not UNSET:
            field_dict["description"] = description

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name", UNSET)

        value = d.pop("value", UNSET)

        description = d.pop("description", UNSET)

        patched_priority_class_write_request = cls(
            name=name,
            value=value,
            description=description,
        )

        return patched_priority_class_write_request
