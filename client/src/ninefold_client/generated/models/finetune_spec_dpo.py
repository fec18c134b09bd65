from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="FinetuneSpecDPO")


@_attrs_define
class FinetuneSpecDPO:
    """Preference optimization; used by the objective dpo."""

    beta: float | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        beta: float | None | Unset
        if isinstance(self.beta, Unset):
            beta = UNSET
        else:
            beta = self.beta

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if beta is not UNSET:
            field_dict["beta"] = beta

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_beta(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        beta = _parse_beta(d.pop("beta", UNSET))

        finetune_spec_dpo = cls(
            beta=beta,
        )

        return finetune_spec_dpo
