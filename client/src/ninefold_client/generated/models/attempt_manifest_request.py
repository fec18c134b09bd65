from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.attempt_manifest_kind_enum import (
    AttemptManifestKindEnum,
    check_attempt_manifest_kind_enum,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.json_object import JsonObject
    from ..models.manifest_file_request import ManifestFileRequest


T = TypeVar("T", bound="AttemptManifestRequest")


@_attrs_define
class AttemptManifestRequest:
    """AttemptManifestRequest"""

    kind: AttemptManifestKindEnum
    files: list[ManifestFileRequest]
    metrics: JsonObject | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        kind: str = self.kind

        files = []
        for files_item_data in self.files:
            files_item = files_item_data.to_dict()
            files.append(files_item)

        metrics: dict[str, Any] | Unset = UNSET
        if not isinstance(self.metrics, Unset):
            metrics = self.metrics.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "files": files,
            }
        )
        if metrics is not UNSET:
            field_dict["metrics"] = metrics

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.json_object import JsonObject
        from ..models.manifest_file_request import ManifestFileRequest

        d = dict(src_dict)
        kind = check_attempt_manifest_kind_enum(d.pop("kind"))

        files = []
        _files = d.pop("files")
        for files_item_data in _files:
            files_item = ManifestFileRequest.from_dict(files_item_data)

            files.append(files_item)

        _metrics = d.pop("metrics", UNSET)
        metrics: JsonObject | Unset
        if isinstance(_metrics, Unset):
            metrics = UNSET
        else:
            metrics = JsonObject.from_dict(_metrics)

        attempt_manifest_request = cls(
            kind=kind,
            files=files,
            metrics=metrics,
        )

        return attempt_manifest_request
