from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="AttemptUploadStartRequest")


@_attrs_define
class AttemptUploadStartRequest:
    """AttemptUploadStartRequest"""

    path: str
    size: int
    sha256: str

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        size = self.size

        sha256 = self.sha256

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "path": path,
                "size": size,
                "sha256": sha256,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        size = d.pop("size")

        sha256 = d.pop("sha256")

        attempt_upload_start_request = cls(
            path=path,
            size=size,
            sha256=sha256,
        )

        return attempt_upload_start_request
