from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ServeSpecParallelPlan")


@_attrs_define
class ServeSpecParallelPlan:
    """Distribution of the model over the cards of a replica; tensor × pipeline × data is the number of
    cards."""

    tensor: int | None | Unset = UNSET
    pipeline: int | None | Unset = UNSET
    data: int | None | Unset = UNSET
    expert: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        tensor: int | None | Unset
        if isinstance(self.tensor, Unset):
            tensor = UNSET
        else:
            tensor = self.tensor

        pipeline: int | None | Unset
        if isinstance(self.pipeline, Unset):
            pipeline = UNSET
        else:
            pipeline = self.pipeline

        data: int | None | Unset
        if isinstance(self.data, Unset):
            data = UNSET
        else:
            data = self.data

        expert: None | str | Unset
        if isinstance(self.expert, Unset):
            expert = UNSET
        else:
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

        def _parse_pipeline(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        pipeline = _parse_pipeline(d.pop("pipeline", UNSET))

        def _parse_data(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        data = _parse_data(d.pop("data", UNSET))

        def _parse_expert(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        expert = _parse_expert(d.pop("expert", UNSET))

        serve_spec_parallel_plan = cls(
            tensor=tensor,
            pipeline=pipeline,
            data=data,
            expert=expert,
        )

        return serve_spec_parallel_plan
