from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="SuppressedIsolationCount")


@_attrs_define
class SuppressedIsolationCount:
    """SuppressedIsolationCount"""

    name: str
    isolations: int

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        isolations = self.isolations

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "isolations": isolations,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        isolations = d.pop("isolations")

        suppressed_isolation_count = cls(
            name=name,
            isolations=isolations,
        )

        return suppressed_isolation_count
