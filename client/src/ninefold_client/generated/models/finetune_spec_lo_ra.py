from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="FinetuneSpecLoRA")


@_attrs_define
class FinetuneSpecLoRA:
    """Adapter; used by the methods lora and qlora."""

    rank: int | None | Unset = UNSET
    alpha: float | None | Unset = UNSET
    dropout: float | None | Unset = UNSET
    target_modules: list[str] | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        rank: int | None | Unset
        if isinstance(self.rank, Unset):
            rank = UNSET
        else:
            rank = self.rank

        alpha: float | None | Unset
        if isinstance(self.alpha, Unset):
            alpha = UNSET
        else:
            alpha = self.alpha

        dropout: float | None | Unset
        if isinstance(self.dropout, Unset):
            dropout = UNSET
        else:
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

        def _parse_rank(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        rank = _parse_rank(d.pop("rank", UNSET))

        def _parse_alpha(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        alpha = _parse_alpha(d.pop("alpha", UNSET))

        def _parse_dropout(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        dropout = _parse_dropout(d.pop("dropout", UNSET))

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

        finetune_spec_lo_ra = cls(
            rank=rank,
            alpha=alpha,
            dropout=dropout,
            target_modules=target_modules,
        )

        return finetune_spec_lo_ra
