from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="CatalogSource")


@_attrs_define
class CatalogSource:
    """CatalogSource"""

    key: str
    title: str

    def to_dict(self) -> dict[str, Any]:
        key = self.key

        title = self.title

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "key": key,
                "title": title,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        key = d.pop("key")

        title = d.pop("title")

        catalog_source = cls(
            key=key,
            title=title,
        )

        return catalog_source
