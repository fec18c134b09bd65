from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.artifact_kind import ArtifactKind, check_artifact_kind

if TYPE_CHECKING:
    from ..models.artifact_file import ArtifactFile
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="Artifact")


@_attrs_define
class Artifact:
    """Artifact"""

    uid: str
    kind: ArtifactKind
    team: None | ObjectReference
    files: list[ArtifactFile]
    size: int
    created_at: datetime.datetime

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        uid = self.uid

        kind: str = self.kind

        team: dict[str, Any] | None
        if isinstance(self.team, ObjectReference):
            team = self.team.to_dict()
        else:
            team = self.team

        files = []
        for files_item_data in self.files:
            files_item = files_item_data.to_dict()
            files.append(files_item)

        size = self.size

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "kind": kind,
                "team": team,
                "files": files,
                "size": size,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.artifact_file import ArtifactFile
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        uid = d.pop("uid")

        kind = check_artifact_kind(d.pop("kind"))

        def _parse_team(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                team_type_0 = ObjectReference.from_dict(data)

                return team_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        team = _parse_team(d.pop("team"))

        files = []
        _files = d.pop("files")
        for files_item_data in _files:
            files_item = ArtifactFile.from_dict(files_item_data)

            files.append(files_item)

        size = d.pop("size")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        artifact = cls(
            uid=uid,
            kind=kind,
            team=team,
            files=files,
            size=size,
            created_at=created_at,
        )

        return artifact
