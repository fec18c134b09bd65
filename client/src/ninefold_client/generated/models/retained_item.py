from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="RetainedItem")


@_attrs_define
class RetainedItem:
    """What a rule would take, had nothing held it."""

    kind: str
    uid: str
    name: str
    held: str
    pinned: bool

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        uid = self.uid

        name = self.name

        held = self.held

        pinned = self.pinned

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "uid": uid,
                "name": name,
                "held": held,
                "pinned": pinned,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        uid = d.pop("uid")

        name = d.pop("name")

        held = d.pop("held")

        pinned = d.pop("pinned")

        retained_item = cls(
            kind=kind,
            uid=uid,
            name=name,
            held=held,
            pinned=pinned,
        )

        return retained_item
