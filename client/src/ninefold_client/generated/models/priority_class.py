from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PriorityClass")


@_attrs_define
class PriorityClass:
    """PriorityClass"""

    uid: str
    name: str
    value: int
    created_at: datetime.datetime
    description: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        value = self.value

        created_at = self.created_at.isoformat()

        description = self.description

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "value": value,
                "created_at": created_at,
            }
        )
        if description is not UNSET:
            field_dict["description"] = description

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        value = d.pop("value")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        description = d.pop("description", UNSET)

        priority_class = cls(
            uid=uid,
            name=name,
            value=value,
            created_at=created_at,
            description=description,
        )

        return priority_class
