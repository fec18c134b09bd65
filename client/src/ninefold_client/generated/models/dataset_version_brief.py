from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="DatasetVersionBrief")


@_attrs_define
class DatasetVersionBrief:
    """DatasetVersionBrief"""

    uid: str
    number: int
    row_count: int
    created_at: datetime.datetime

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        number = self.number

        row_count = self.row_count

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "number": number,
                "row_count": row_count,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uid = d.pop("uid")

        number = d.pop("number")

        row_count = d.pop("row_count")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        dataset_version_brief = cls(
            uid=uid,
            number=number,
            row_count=row_count,
            created_at=created_at,
        )

        return dataset_version_brief
