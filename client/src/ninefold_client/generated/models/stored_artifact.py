from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.artifact_kind import ArtifactKind, check_artifact_kind
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason


T = TypeVar("T", bound="StoredArtifact")


@_attrs_define
class StoredArtifact:
    """StoredArtifact"""

    uid: str
    name: str
    kind: ArtifactKind
    team: None | ObjectReference
    size: int
    created_at: datetime.datetime
    deletion_reason: Reason
    pinned_at: datetime.datetime | None | Unset = UNSET
    deleted_at: datetime.datetime | None | Unset = UNSET
    deleted_by: str | Unset = UNSET
    removed_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        uid = self.uid

        name = self.name

        kind: str = self.kind

        team: dict[str, Any] | None
        if isinstance(self.team, ObjectReference):
            team = self.team.to_dict()
        else:
            team = self.team

        size = self.size

        created_at = self.created_at.isoformat()

        deletion_reason = self.deletion_reason.to_dict()

        pinned_at: None | str | Unset
        if isinstance(self.pinned_at, Unset):
            pinned_at = UNSET
        elif isinstance(self.pinned_at, datetime.datetime):
            pinned_at = self.pinned_at.isoformat()
        else:
            pinned_at = self.pinned_at

        deleted_at: None | str | Unset
        if isinstance(self.deleted_at, Unset):
            deleted_at = UNSET
        elif isinstance(self.deleted_at, datetime.datetime):
            deleted_at = self.deleted_at.isoformat()
        else:
            deleted_at = self.deleted_at

        deleted_by = self.deleted_by

        removed_at: None | str | Unset
        if isinstance(self.removed_at, Unset):
            removed_at = UNSET
        elif isinstance(self.removed_at, datetime.datetime):
            removed_at = self.removed_at.isoformat()
        else:
            removed_at = self.removed_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "kind": kind,
                "team": team,
                "size": size,
                "created_at": created_at,
                "deletion_reason": deletion_reason,
            }
        )
        if pinned_at is not UNSET:
            field_dict["pinned_at"] = pinned_at
        if deleted_at is not UNSET:
            field_dict["deleted_at"] = deleted_at
        if deleted_by is not UNSET:
            field_dict["deleted_by"] = deleted_by
        if removed_at is not UNSET:
            field_dict["removed_at"] = removed_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

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

        size = d.pop("size")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        deletion_reason = Reason.from_dict(d.pop("deletion_reason"))

        def _parse_pinned_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                pinned_at_type_0 = datetime.datetime.fromisoformat(data)

                return pinned_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        pinned_at = _parse_pinned_at(d.pop("pinned_at", UNSET))

        def _parse_deleted_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                deleted_at_type_0 = datetime.datetime.fromisoformat(data)

                return deleted_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        deleted_at = _parse_deleted_at(d.pop("deleted_at", UNSET))

        deleted_by = d.pop("deleted_by", UNSET)

        def _parse_removed_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                removed_at_type_0 = datetime.datetime.fromisoformat(data)

                return removed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        removed_at = _parse_removed_at(d.pop("removed_at", UNSET))

        stored_artifact = cls(
            uid=uid,
            name=name,
            kind=kind,
            team=team,
            size=size,
            created_at=created_at,
            deletion_reason=deletion_reason,
            pinned_at=pinned_at,
            deleted_at=deleted_at,
            deleted_by=deleted_by,
            removed_at=removed_at,
        )

        return stored_artifact
