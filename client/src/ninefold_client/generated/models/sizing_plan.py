from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="SizingPlan")


@_attrs_define
class SizingPlan:
    """SizingPlan"""

    tensor: int
    pipeline: int
    data: int
    context: int
    expert: int
    zero_stage: int
    cards: int
    sequence: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        tensor = self.tensor

        pipeline = self.pipeline

        data = self.data

        context = self.context

        expert = self.expert

        zero_stage = self.zero_stage

        cards = self.cards

        sequence = self.sequence

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "tensor": tensor,
                "pipeline": pipeline,
                "data": data,
                "context": context,
                "expert": expert,
                "zero_stage": zero_stage,
                "cards": cards,
            }
        )
        if sequence is not UNSET:
            field_dict["sequence"] = sequence

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        tensor = d.pop("tensor")

        pipeline = d.pop("pipeline")

        data = d.pop("data")

        context = d.pop("context")

        expert = d.pop("expert")

        zero_stage = d.pop("zero_stage")

        cards = d.pop("cards")

        sequence = d.pop("sequence", UNSET)

        sizing_plan = cls(
            tensor=tensor,
            pipeline=pipeline,
            data=data,
            context=context,
            expert=expert,
            zero_stage=zero_stage,
            cards=cards,
            sequence=sequence,
        )

        return sizing_plan
