from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="ApiResource")


@_attrs_define
class ApiResource:
    """ApiResource"""

    name: str
    title: str
    tag: str
    url: str

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        title = self.title

        tag = self.tag

        url = self.url

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "title": title,
                "tag": tag,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        title = d.pop("title")

        tag = d.pop("tag")

        url = d.pop("url")

        api_resource = cls(
            name=name,
            title=title,
            tag=tag,
            url=url,
        )

        return api_resource
