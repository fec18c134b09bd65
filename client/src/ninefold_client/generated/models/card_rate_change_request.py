from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="CardRateChangeRequest")


@_attrs_define
class CardRateChangeRequest:
    """CardRateChangeRequest"""

    per_hour: str

    def to_dict(self) -> dict[str, Any]:
        per_hour = self.per_hour

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "per_hour": per_hour,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        per_hour = d.pop("per_hour")

        card_rate_change_request = cls(
            per_hour=per_hour,
        )

        return card_rate_change_request
