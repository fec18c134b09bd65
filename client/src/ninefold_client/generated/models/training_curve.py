from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.job_state import JobState, check_job_state

if TYPE_CHECKING:
    from ..models.training_curve_points_item import TrainingCurvePointsItem


T = TypeVar("T", bound="TrainingCurve")


@_attrs_define
class TrainingCurve:
    """TrainingCurve"""

    state: JobState
    points: list[TrainingCurvePointsItem]

    def to_dict(self) -> dict[str, Any]:
        state: str = self.state

        points = []
        for points_item_data in self.points:
            points_item = points_item_data.to_dict()
            points.append(points_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "state": state,
                "points": points,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.training_curve_points_item import TrainingCurvePointsItem

        d = dict(src_dict)
        state = check_job_state(d.pop("state"))

        points = []
        _points = d.pop("points")
        for points_item_data in _points:
            points_item = TrainingCurvePointsItem.from_dict(points_item_data)

            points.append(points_item)

        training_curve = cls(
            state=state,
            points=points,
        )

        return training_curve
