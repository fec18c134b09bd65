from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="QuantizeSpecTolerance")


@_attrs_define
class QuantizeSpecTolerance:
    """Maximum loss of quality for the quantized model to be accepted."""

    perplexity_increase: float | None | Unset = UNSET
    accuracy_drop: float | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        perplexity_increase: float | None | Unset
        if isinstance(self.perplexity_increase, Unset):
            perplexity_increase = UNSET
        else:
            perplexity_increase = self.perplexity_increase

        accuracy_drop: float | None | Unset
        if isinstance(self.accuracy_drop, Unset):
            accuracy_drop = UNSET
        else:
            accuracy_drop = self.accuracy_drop

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if perplexity_increase is not UNSET:
            field_dict["perplexity_increase"] = perplexity_increase
        if accuracy_drop is not UNSET:
            field_dict["accuracy_drop"] = accuracy_drop

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_perplexity_increase(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        perplexity_increase = _parse_perplexity_increase(d.pop("perplexity_increase", UNSET))

        def _parse_accuracy_drop(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        accuracy_drop = _parse_accuracy_drop(d.pop("accuracy_drop", UNSET))

        quantize_spec_tolerance = cls(
            perplexity_increase=perplexity_increase,
            accuracy_drop=accuracy_drop,
        )

        return quantize_spec_tolerance
