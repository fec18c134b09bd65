from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any, TypeVar

from attrs import define as _attrs_define

from .. import types
from ..types import UNSET, File, Unset

T = TypeVar("T", bound="CodeArchiveRequest")


@_attrs_define
class CodeArchiveRequest:
    """The request for something that a team will own."""

    file: File
    team: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        file = self.file.to_tuple()

        team = self.team

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "file": file,
            }
        )
        if team is not UNSET:
            field_dict["team"] = team

        return field_dict

    def to_multipart(self) -> types.RequestFiles:
        files: types.RequestFiles = []

        files.append(("file", self.file.to_tuple()))

        if not isinstance(self.team, Unset):
            files.append(("team", (None, str(self.team).encode(), "text/plain")))

        return files

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        file = File(payload=BytesIO(d.pop("file")))

        team = d.pop("team", UNSET)

        code_archive_request = cls(
            file=file,
            team=team,
        )

        return code_archive_request
