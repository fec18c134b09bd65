from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="FinetuneSpecRequestDPO")


@_attrs_define
class FinetuneSpecRequestDPO:
    """Preference optimization; used by the objective dpo."""

    beta: float | Unset = 0.1

    def to_dict(self) -> dict[str, Any]:
        beta = self.beta

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if beta is not UNSET:
            field_dict["beta"] = beta

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        beta = d.pop("beta", UNSET)

        finetune_spec_request_dpo = cls(
            beta=beta,
        )

        return finetune_spec_request_dpo
