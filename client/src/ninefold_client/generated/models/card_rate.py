from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="CardRate")


@_attrs_define
class CardRate:
    """What an hour of one card of a chip is charged at in reports."""

    chip: str
    per_hour: str
    currency: str

    def to_dict(self) -> dict[str, Any]:
        chip = self.chip

        per_hour = self.per_hour

        currency = self.currency

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "chip": chip,
                "per_hour": per_hour,
                "currency": currency,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        chip = d.pop("chip")

        per_hour = d.pop("per_hour")

        currency = d.pop("currency")

        card_rate = cls(
            chip=chip,
            per_hour=per_hour,
            currency=currency,
        )

        return card_rate
