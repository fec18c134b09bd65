from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.attempt_progress_request_points_item import (
        AttemptProgressRequestPointsItem,
    )


T = TypeVar("T", bound="AttemptProgressRequest")


@_attrs_define
class AttemptProgressRequest:
    """AttemptProgressRequest"""

    points: list[AttemptProgressRequestPointsItem]

    def to_dict(self) -> dict[str, Any]:
        points = []
        for points_item_data in self.points:
            points_item = points_item_data.to_dict()
            points.append(points_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "points": points,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.attempt_progress_request_points_item import (
            AttemptProgressRequestPointsItem,
        )

        d = dict(src_dict)
        points = []
        _points = d.pop("points")
        for points_item_data in _points:
            points_item = AttemptProgressRequestPointsItem.from_dict(points_item_data)

            points.append(points_item)

        attempt_progress_request = cls(
            points=points,
        )

        return attempt_progress_request
