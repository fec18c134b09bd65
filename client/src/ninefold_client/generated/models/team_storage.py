from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.team_storage_level_enum import (
    TeamStorageLevelEnum,
    check_team_storage_level_enum,
)

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.team_storage_by_kind import TeamStorageByKind


T = TypeVar("T", bound="TeamStorage")


@_attrs_define
class TeamStorage:
    """TeamStorage"""

    team: ObjectReference
    used: int
    limit: int | None
    level: TeamStorageLevelEnum
    deleted: int
    by_kind: TeamStorageByKind

    def to_dict(self) -> dict[str, Any]:
        team = self.team.to_dict()

        used = self.used

        limit: int | None
        limit = self.limit

        level: str = self.level

        deleted = self.deleted

        by_kind = self.by_kind.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "team": team,
                "used": used,
                "limit": limit,
                "level": level,
                "deleted": deleted,
                "by_kind": by_kind,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.team_storage_by_kind import TeamStorageByKind

        d = dict(src_dict)
        team = ObjectReference.from_dict(d.pop("team"))

        used = d.pop("used")

        def _parse_limit(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        limit = _parse_limit(d.pop("limit"))

        level = check_team_storage_level_enum(d.pop("level"))

        deleted = d.pop("deleted")

        by_kind = TeamStorageByKind.from_dict(d.pop("by_kind"))

        team_storage = cls(
            team=team,
            used=used,
            limit=limit,
            level=level,
            deleted=deleted,
            by_kind=by_kind,
        )

        return team_storage
