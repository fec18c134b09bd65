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


T = TypeVar("T", bound="DatasetUploadRequest")


@_attrs_define
class DatasetUploadRequest:
    """The request for something that a team will own."""

    file: File
    name: str
    columns: ColumnMappingRequest | Unset = UNSET
    team: str | Unset = UNSET
    description: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        file = self.file.to_tuple()

        name = self.name

        columns: dict[str, Any] | Unset = UNSET
        if not isinstance(self.columns, Unset):
            columns = self.columns.to_dict()

        team = self.team

        description = self.description

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "file": file,
                "name": name,
            }
        )
        if columns is not UNSET:
            field_dict["columns"] = columns
        if team is not UNSET:
            field_dict["team"] = team
        if description is not UNSET:
            field_dict["description"] = description

        return field_dict

    def to_multipart(self) -> types.RequestFiles:
        files: types.RequestFiles = []

        files.append(("file", self.file.to_tuple()))

        files.append(("name", (None, str(self.name).encode(), "text/plain")))

        if not isinstance(self.columns, Unset):
            files.append(
                ("columns", (None, json.dumps(self.columns.to_dict()).encode(), "application/json"))
            )

        if not isinstance(self.team, Unset):
            files.append(("team", (None, str(self.team).encode(), "text/plain")))

        if not isinstance(self.description, Unset):
            files.append(("description", (None, str(self.description).encode(), "text/plain")))

        return files

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.column_mapping_request import ColumnMappingRequest

        d = dict(src_dict)
        file = File(payload=BytesIO(d.pop("file")))

        name = d.pop("name")

        _columns = d.pop("columns", UNSET)
        columns: ColumnMappingRequest | Unset
        if isinstance(_columns, Unset):
            columns = UNSET
        else:
            columns = ColumnMappingRequest.from_dict(_columns)

        team = d.pop("team", UNSET)

        description = d.pop("description", UNSET)

        dataset_upload_request = cls(
            file=file,
            name=name,
            columns=columns,
            team=team,
            description=description,
        )

        return dataset_upload_request
