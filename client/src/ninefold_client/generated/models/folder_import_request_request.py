from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="FolderImportRequestRequest")


@_attrs_define
class FolderImportRequestRequest:
    """The request for something that a team will own."""

    name: str
    path: str
    team: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        path = self.path

        team = self.team

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "path": path,
            }
        )
        if team is not UNSET:
            field_dict["team"] = team

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        path = d.pop("path")

        team = d.pop("team", UNSET)

        folder_import_request_request = cls(
            name=name,
            path=path,
            team=team,
        )

        return folder_import_request_request
