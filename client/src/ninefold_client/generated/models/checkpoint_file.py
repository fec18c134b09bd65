from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="CheckpointFile")


@_attrs_define
class CheckpointFile:
    """CheckpointFile"""

    path: str
    digest: str
    size: int
    url: str

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        digest = self.digest

        size = self.size

        url = self.url

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "path": path,
                "digest": digest,
                "size": size,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        digest = d.pop("digest")

        size = d.pop("size")

        url = d.pop("url")

        checkpoint_file = cls(
            path=path,
            digest=digest,
            size=size,
            url=url,
        )

        return checkpoint_file
