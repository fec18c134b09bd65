from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.dataset_version_brief import DatasetVersionBrief
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="Dataset")


@_attrs_define
class Dataset:
    """Dataset"""

    uid: str
    name: str
    team: ObjectReference
    created_at: datetime.datetime
    versions: list[DatasetVersionBrief]
    description: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        team = self.team.to_dict()

        created_at = self.created_at.isoformat()

        versions = []
        for versions_item_data in self.versions:
            versions_item = versions_item_data.to_dict()
            versions.append(versions_item)

        description = self.description

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "team": team,
                "created_at": created_at,
                "versions": versions,
            }
        )
        if description is not UNSET:
            field_dict["description"] = description

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.dataset_version_brief import DatasetVersionBrief
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        team = ObjectReference.from_dict(d.pop("team"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        versions = []
        _versions = d.pop("versions")
        for versions_item_data in _versions:
            versions_item = DatasetVersionBrief.from_dict(versions_item_data)

            versions.append(versions_item)

        description = d.pop("description", UNSET)

        dataset = cls(
            uid=uid,
            name=name,
            team=team,
            created_at=created_at,
            versions=versions,
            description=description,
        )

        return dataset
