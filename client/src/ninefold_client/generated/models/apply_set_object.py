from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="ApplySetObject")


@_attrs_define
class ApplySetObject:
    """ApplySetObject"""

    kind: str
    uid: str
    name: str

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        uid = self.uid

        name = self.name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "uid": uid,
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        uid = d.pop("uid")

        name = d.pop("name")

        apply_set_object = cls(
            kind=kind,
            uid=uid,
            name=name,
        )

        return apply_set_object
