from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="FinetuneSpecQLoRA")


@_attrs_define
class FinetuneSpecQLoRA:
    """Quantization of the frozen weights; used by the method qlora."""

    bits: int | None | Unset = UNSET
    double_quantization: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        bits: int | None | Unset
        if isinstance(self.bits, Unset):
            bits = UNSET
        else:
            bits = self.bits

        double_quantization: None | str | Unset
        if isinstance(self.double_quantization, Unset):
            double_quantization = UNSET
        else:
            double_quantization = self.double_quantization

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if bits is not UNSET:
            field_dict["bits"] = bits
        if double_quantization is not UNSET:
            field_dict["double_quantization"] = double_quantization

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_bits(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        bits = _parse_bits(d.pop("bits", UNSET))

        def _parse_double_quantization(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        double_quantization = _parse_double_quantization(d.pop("double_quantization", UNSET))

        finetune_spec_q_lo_ra = cls(
            bits=bits,
            double_quantization=double_quantization,
        )

        return finetune_spec_q_lo_ra
