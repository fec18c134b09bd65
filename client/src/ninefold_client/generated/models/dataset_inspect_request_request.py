from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from .. import types
from ..types import UNSET, File, Unset

if TYPE_CHECKING:
    from ..models.column_mapping_request import ColumnMappingRequest


T = TypeVar("T", bound="DatasetInspectRequestRequest")


@_attrs_define
class DatasetInspectRequestRequest:
    """DatasetInspectRequestRequest"""

    file: File
    columns: ColumnMappingRequest | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        file = self.file.to_tuple()

        columns: dict[str, Any] | Unset = UNSET
        if not isinstance(self.columns, Unset):
            columns = self.columns.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "file": file,
            }
        )
        if columns is not UNSET:
            field_dict["columns"] = columns

        return field_dict

    def to_multipart(self) -> types.RequestFiles:
        files: types.RequestFiles = []

        files.append(("file", self.file.to_tuple()))

        if not isinstance(self.columns, Unset):
            files.append(
                ("columns", (None, json.dumps(self.columns.to_dict()).encode(), "application/json"))
            )

        return files

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.column_mapping_request import ColumnMappingRequest

        d = dict(src_dict)
        file = File(payload=BytesIO(d.pop("file")))

        _columns = d.pop("columns", UNSET)
        columns: ColumnMappingRequest | Unset
        if isinstance(_columns, Unset):
            columns = UNSET
        else:
            columns = ColumnMappingRequest.from_dict(_columns)

        dataset_inspect_request_request = cls(
            file=file,
            columns=columns,
        )

        return dataset_inspect_request_request
