from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.upload_part import UploadPart


T = TypeVar("T", bound="AttemptDirectUpload")


@_attrs_define
class AttemptDirectUpload:
    """AttemptDirectUpload"""

    upload: str
    parts: list[UploadPart]

    def to_dict(self) -> dict[str, Any]:
        upload = self.upload

        parts = []
        for parts_item_data in self.parts:
            parts_item = parts_item_data.to_dict()
            parts.append(parts_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "upload": upload,
                "parts": parts,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.upload_part import UploadPart

        d = dict(src_dict)
        upload = d.pop("upload")

        parts = []
        _parts = d.pop("parts")
        for parts_item_data in _parts:
            parts_item = UploadPart.from_dict(parts_item_data)

            parts.append(parts_item)

        attempt_direct_upload = cls(
            upload=upload,
            parts=parts,
        )

        return attempt_direct_upload
