from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="ModelLine")


@_attrs_define
class ModelLine:
    """ModelLine"""

    uid: str
    name: str
    team: None | ObjectReference
    created_at: datetime.datetime
    description: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        uid = self.uid

        name = self.name

        team: dict[str, Any] | None
        if isinstance(self.team, ObjectReference):
            team = self.team.to_dict()
        else:
            team = self.team

        created_at = self.created_at.isoformat()

        description = self.description

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "team": team,
                "created_at": created_at,
            }
        )
        if description is not UNSET:
            field_dict["description"] = description

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

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

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        description = d.pop("description", UNSET)

        model_line = cls(
            uid=uid,
            name=name,
            team=team,
            created_at=created_at,
            description=description,
        )

        return model_line
