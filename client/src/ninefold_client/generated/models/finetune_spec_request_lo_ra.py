from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="FinetuneSpecRequestLoRA")


@_attrs_define
class FinetuneSpecRequestLoRA:
    """Adapter; used by the methods lora and qlora."""

    rank: int | Unset = 16
    alpha: float | Unset = 32.0
    dropout: float | Unset = 0.0
    target_modules: list[str] | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        rank = self.rank

        alpha = self.alpha

        dropout = self.dropout

        target_modules: list[str] | None | Unset
        if isinstance(self.target_modules, Unset):
            target_modules = UNSET
        elif isinstance(self.target_modules, list):
            target_modules = self.target_modules

        else:
            target_modules = self.target_modules

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if rank is not UNSET:
            field_dict["rank"] = rank
        if alpha is not UNSET:
            field_dict["alpha"] = alpha
        if dropout is not UNSET:
            field_dict["dropout"] = dropout
        if target_modules is not UNSET:
            field_dict["target_modules"] = target_modules

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        rank = d.pop("rank", UNSET)

        alpha = d.pop("alpha", UNSET)

        dropout = d.pop("dropout", UNSET)

        def _parse_target_modules(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                target_modules_type_0 = cast(list[str], data)

                return target_modules_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        target_modules = _parse_target_modules(d.pop("target_modules", UNSET))

        finetune_spec_request_lo_ra = cls(
            rank=rank,
            alpha=alpha,
            dropout=dropout,
            target_modules=target_modules,
        )

        return finetune_spec_request_lo_ra
