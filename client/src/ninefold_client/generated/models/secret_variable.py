from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="SecretVariable")


@_attrs_define
class SecretVariable:
    """SecretVariable"""

    name: str
    set_: bool

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        set_ = self.set_

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "set": set_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        set_ = d.pop("set")

        secret_variable = cls(
            name=name,
            set_=set_,
        )

        return secret_variable
