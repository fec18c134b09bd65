from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.dataset_statistics import DatasetStatistics
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="DatasetVersion")


@_attrs_define
class DatasetVersion:
    """DatasetVersion"""

    uid: str
    name: str
    dataset: ObjectReference
    team: ObjectReference
    number: int
    row_count: int
    content_hash: str
    source_name: str
    artifact: str
    created_by: str
    created_at: datetime.datetime
    statistics: DatasetStatistics

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        dataset = self.dataset.to_dict()

        team = self.team.to_dict()

        number = self.number

        row_count = self.row_count

        content_hash = self.content_hash

        source_name = self.source_name

        artifact = self.artifact

        created_by = self.created_by

        created_at = self.created_at.isoformat()

        statistics = self.statistics.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "dataset": dataset,
                "team": team,
                "number": number,
                "row_count": row_count,
                "content_hash": content_hash,
                "source_name": source_name,
                "artifact": artifact,
                "created_by": created_by,
                "created_at": created_at,
                "statistics": statistics,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.dataset_statistics import DatasetStatistics
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        dataset = ObjectReference.from_dict(d.pop("dataset"))

        team = ObjectReference.from_dict(d.pop("team"))

        number = d.pop("number")

        row_count = d.pop("row_count")

        content_hash = d.pop("content_hash")

        source_name = d.pop("source_name")

        artifact = d.pop("artifact")

        created_by = d.pop("created_by")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        statistics = DatasetStatistics.from_dict(d.pop("statistics"))

        dataset_version = cls(
            uid=uid,
            name=name,
            dataset=dataset,
            team=team,
            number=number,
            row_count=row_count,
            content_hash=content_hash,
            source_name=source_name,
            artifact=artifact,
            created_by=created_by,
            created_at=created_at,
            statistics=statistics,
        )

        return dataset_version
