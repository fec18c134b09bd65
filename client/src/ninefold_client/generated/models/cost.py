from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="Cost")


@_attrs_define
class Cost:
    """Cost"""

    amount: str
    unrated: list[str]

    def to_dict(self) -> dict[str, Any]:
        amount = self.amount

        unrated = self.unrated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "amount": amount,
                "unrated": unrated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        amount = d.pop("amount")

        unrated = cast(list[str], d.pop("unrated"))

        cost = cls(
            amount=amount,
            unrated=unrated,
        )

        return cost
