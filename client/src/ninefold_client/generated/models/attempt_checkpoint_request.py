from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.manifest_file_request import ManifestFileRequest


T = TypeVar("T", bound="AttemptCheckpointRequest")


@_attrs_define
class AttemptCheckpointRequest:
    """AttemptCheckpointRequest"""

    step: int
    keep: int
    files: list[ManifestFileRequest]

    def to_dict(self) -> dict[str, Any]:
        step = self.step

        keep = self.keep

        files = []
        for files_item_data in self.files:
            files_item = files_item_data.to_dict()
            files.append(files_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "step": step,
                "keep": keep,
                "files": files,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.manifest_file_request import ManifestFileRequest

        d = dict(src_dict)
        step = d.pop("step")

        keep = d.pop("keep")

        files = []
        _files = d.pop("files")
        for files_item_data in _files:
            files_item = ManifestFileRequest.from_dict(files_item_data)

            files.append(files_item)

        attempt_checkpoint_request = cls(
            step=step,
            keep=keep,
            files=files,
        )

        return attempt_checkpoint_request
