from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.apply_set_object import ApplySetObject
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="ApplySet")


@_attrs_define
class ApplySet:
    """ApplySet"""

    uid: str
    name: str
    team: None | ObjectReference
    changed_at: datetime.datetime
    objects: list[ApplySetObject]
    version: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        uid = self.uid

        name = self.name

        team: dict[str, Any] | None
        if isinstance(self.team, ObjectReference):
            team = self.team.to_dict()
        else:
            team = self.team

        changed_at = self.changed_at.isoformat()

        objects = []
        for objects_item_data in self.objects:
            objects_item = objects_item_data.to_dict()
            objects.append(objects_item)

        version = self.version

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "team": team,
                "changed_at": changed_at,
                "objects": objects,
            }
        )
        if version is not UNSET:
            field_dict["version"] = version

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.apply_set_object import ApplySetObject
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

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        objects = []
        _objects = d.pop("objects")
        for objects_item_data in _objects:
            objects_item = ApplySetObject.from_dict(objects_item_data)

            objects.append(objects_item)

        version = d.pop("version", UNSET)

        apply_set = cls(
            uid=uid,
            name=name,
            team=team,
            changed_at=changed_at,
            objects=objects,
            version=version,
        )

        return apply_set
