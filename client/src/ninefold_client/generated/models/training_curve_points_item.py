from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.training_curve_points_item_checkpoint import (
        TrainingCurvePointsItemCheckpoint,
    )


T = TypeVar("T", bound="TrainingCurvePointsItem")


@_attrs_define
class TrainingCurvePointsItem:
    """TrainingCurvePointsItem"""

    step: int | Unset = UNSET
    total_steps: int | Unset = UNSET
    checkpoint: TrainingCurvePointsItemCheckpoint | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        step = self.step

        total_steps = self.total_steps

        checkpoint: dict[str, Any] | Unset = UNSET
        if not isinstance(self.checkpoint, Unset):
            checkpoint = self.checkpoint.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if step is not UNSET:
            field_dict["step"] = step
        if total_steps is not UNSET:
            field_dict["total_steps"] = total_steps
        if checkpoint is not UNSET:
            field_dict["checkpoint"] = checkpoint

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.training_curve_points_item_checkpoint import (
            TrainingCurvePointsItemCheckpoint,
        )

        d = dict(src_dict)
        step = d.pop("step", UNSET)

        total_steps = d.pop("total_steps", UNSET)

        _checkpoint = d.pop("checkpoint", UNSET)
        checkpoint: TrainingCurvePointsItemCheckpoint | Unset
        if isinstance(_checkpoint, Unset):
            checkpoint = UNSET
        else:
            checkpoint = TrainingCurvePointsItemCheckpoint.from_dict(_checkpoint)

        training_curve_points_item = cls(
            step=step,
            total_steps=total_steps,
            checkpoint=checkpoint,
        )

        return training_curve_points_item
