from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="SizingSpecParallelPlan")


@_attrs_define
class SizingSpecParallelPlan:
    """Parallel degrees; empty ones are proposed."""

    tensor: int | None | Unset = UNSET
    pipeline: int | None | Unset = UNSET
    data: int | None | Unset = UNSET
    context: int | None | Unset = UNSET
    expert: int | None | Unset = UNSET
    sequence: None | str | Unset = UNSET
    zero_stage: int | None | Unset = UNSET

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

        context: int | None | Unset
        if isinstance(self.context, Unset):
            context = UNSET
        else:
            context = self.context

        expert: int | None | Unset
        if isinstance(self.expert, Unset):
            expert = UNSET
        else:
            expert = self.expert

        sequence: None | str | Unset
        if isinstance(self.sequence, Unset):
            sequence = UNSET
        else:
            sequence = self.sequence

        zero_stage: int | None | Unset
        if isinstance(self.zero_stage, Unset):
            zero_stage = UNSET
        else:
            zero_stage = self.zero_stage

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if tensor is not UNSET:
            field_dict["tensor"] = tensor
        if pipeline is not UNSET:
            field_dict["pipeline"] = pipeline
        if data is not UNSET:
            field_dict["data"] = data
        if context is not UNSET:
            field_dict["context"] = context
        if expert is not UNSET:
            field_dict["expert"] = expert
        if sequence is not UNSET:
            field_dict["sequence"] = sequence
        if zero_stage is not UNSET:
            field_dict["zero_stage"] = zero_stage

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

        def _parse_context(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        context = _parse_context(d.pop("context", UNSET))

        def _parse_expert(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        expert = _parse_expert(d.pop("expert", UNSET))

        def _parse_sequence(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        sequence = _parse_sequence(d.pop("sequence", UNSET))

        def _parse_zero_stage(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        zero_stage = _parse_zero_stage(d.pop("zero_stage", UNSET))

        sizing_spec_parallel_plan = cls(
            tensor=tensor,
            pipeline=pipeline,
            data=data,
            context=context,
            expert=expert,
            sequence=sequence,
            zero_stage=zero_stage,
        )

        return sizing_spec_parallel_plan
