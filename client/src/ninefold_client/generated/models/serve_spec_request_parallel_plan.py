from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.serve_spec_request_parallel_plan_expert_parallel import (
    ServeSpecRequestParallelPlanExpertParallel,
    check_serve_spec_request_parallel_plan_expert_parallel,
)
from ..types import UNSET, Unset

T = TypeVar("T", bound="ServeSpecRequestParallelPlan")


@_attrs_define
class ServeSpecRequestParallelPlan:
    """Distribution of the model over the cards of a replica; tensor × pipeline × data is the number of
    cards."""

    tensor: int | None | Unset = UNSET
    pipeline: int | Unset = 1
    data: int | Unset = 1
    expert: ServeSpecRequestParallelPlanExpertParallel | Unset = "off"

    def to_dict(self) -> dict[str, Any]:
        tensor: int | None | Unset
        if isinstance(self.tensor, Unset):
            tensor = UNSET
        else:
            tensor = self.tensor

        pipeline = self.pipeline

        data = self.data

        expert: str | Unset = UNSET
        if not isinstance(self.expert, Unset):
            expert = self.expert

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if tensor is not UNSET:
            field_dict["tensor"] = tensor
        if pipeline is not UNSET:
            field_dict["pipeline"] = pipeline
        if data is not UNSET:
            field_dict["data"] = data
        if expert is not UNSET:
            field_dict["expert"] = expert

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_tensor(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        tensor = _parse_tensor(d.pop("tensor", UNSET))

        pipeline = d.pop("pipeline", UNSET)

        data = d.pop("data", UNSET)

        _expert = d.pop("expert", UNSET)
        expert: ServeSpecRequestParallelPlanExpertParallel | Unset
        if isinstance(_expert, Unset):
            expert = UNSET
        else:
            expert = check_serve_spec_request_parallel_plan_expert_parallel(_expert)

        serve_spec_request_parallel_plan = cls(
            tensor=tensor,
            pipeline=pipeline,
            data=data,
            expert=expert,
        )

        return serve_spec_request_parallel_plan
