from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.finetune_step_gate_type_0_otherwise import (
    FinetuneStepGateType0Otherwise,
    check_finetune_step_gate_type_0_otherwise,
)
from ..types import UNSET, Unset

T = TypeVar("T", bound="FinetuneStepGateType0")


@_attrs_define
class FinetuneStepGateType0:
    """FinetuneStepGateType0"""

    metric: str | Unset = UNSET
    threshold: float | None | Unset = UNSET
    otherwise: FinetuneStepGateType0Otherwise | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        metric = self.metric

        threshold: float | None | Unset
        if isinstance(self.threshold, Unset):
            threshold = UNSET
        else:
            threshold = self.threshold

        otherwise: str | Unset = UNSET
        if not isinstance(self.otherwise, Unset):
            otherwise = self.otherwise

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if metric is not UNSET:
            field_dict["metric"] = metric
        if threshold is not UNSET:
            field_dict["threshold"] = threshold
        if otherwise is not UNSET:
            field_dict["otherwise"] = otherwise

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        metric = d.pop("metric", UNSET)

        def _parse_threshold(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        threshold = _parse_threshold(d.pop("threshold", UNSET))

        _otherwise = d.pop("otherwise", UNSET)
        otherwise: FinetuneStepGateType0Otherwise | Unset
        if isinstance(_otherwise, Unset):
            otherwise = UNSET
        else:
            otherwise = check_finetune_step_gate_type_0_otherwise(_otherwise)

        finetune_step_gate_type_0 = cls(
            metric=metric,
            threshold=threshold,
            otherwise=otherwise,
        )

        return finetune_step_gate_type_0
