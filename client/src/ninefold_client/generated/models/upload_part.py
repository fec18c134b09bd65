from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="UploadPart")


@_attrs_define
class UploadPart:
    """UploadPart"""

    url: str
    offset: int
    size: int

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        offset = self.offset

        size = self.size

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "url": url,
                "offset": offset,
                "size": size,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        url = d.pop("url")

        offset = d.pop("offset")

        size = d.pop("size")

        upload_part = cls(
            url=url,
            offset=offset,
            size=size,
        )

        return upload_part
