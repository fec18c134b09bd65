from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="AttemptUploadCompleteRequest")


@_attrs_define
class AttemptUploadCompleteRequest:
    """AttemptUploadCompleteRequest"""

    upload: str

    def to_dict(self) -> dict[str, Any]:
        upload = self.upload

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "upload": upload,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        upload = d.pop("upload")

        attempt_upload_complete_request = cls(
            upload=upload,
        )

        return attempt_upload_complete_request
