from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="ImportFolder")


@_attrs_define
class ImportFolder:
    """ImportFolder"""

    name: str
    path: str

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        path = self.path

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "path": path,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        path = d.pop("path")

        import_folder = cls(
            name=name,
            path=path,
        )

        return import_folder
