from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.finetune_spec_request_q_lo_ra_double_quantization import (
    FinetuneSpecRequestQLoRADoubleQuantization,
    check_finetune_spec_request_q_lo_ra_double_quantization,
)
from ..types import UNSET, Unset

T = TypeVar("T", bound="FinetuneSpecRequestQLoRA")


@_attrs_define
class FinetuneSpecRequestQLoRA:
    """Quantization of the frozen weights; used by the method qlora."""

    bits: int | Unset = 4
    double_quantization: FinetuneSpecRequestQLoRADoubleQuantization | Unset = "on"

    def to_dict(self) -> dict[str, Any]:
        bits = self.bits

        double_quantization: str | Unset = UNSET
        if not isinstance(self.double_quantization, Unset):
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
        bits = d.pop("bits", UNSET)

        _double_quantization = d.pop("double_quantization", UNSET)
        double_quantization: FinetuneSpecRequestQLoRADoubleQuantization | Unset
        if isinstance(_double_quantization, Unset):
            double_quantization = UNSET
        else:
            double_quantization = check_finetune_spec_request_q_lo_ra_double_quantization(
                _double_quantization
            )

        finetune_spec_request_q_lo_ra = cls(
            bits=bits,
            double_quantization=double_quantization,
        )

        return finetune_spec_request_q_lo_ra
