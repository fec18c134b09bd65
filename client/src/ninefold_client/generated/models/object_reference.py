from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="ObjectReference")


@_attrs_define
class ObjectReference:
    """Another object, in brief."""

    uid: str
    name: str

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        object_reference = cls(
            uid=uid,
            name=name,
        )

        return object_reference
