from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.cost import Cost


T = TypeVar("T", bound="UsageMonth")


@_attrs_define
class UsageMonth:
    """UsageMonth"""

    card_microseconds: int
    card_hours: str
    month: str
    name: str
    cost: Cost
    share: float

    def to_dict(self) -> dict[str, Any]:
        card_microseconds = self.card_microseconds

        card_hours = self.card_hours

        month = self.month

        name = self.name

        cost = self.cost.to_dict()

        share = self.share

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "card_microseconds": card_microseconds,
                "card_hours": card_hours,
                "month": month,
                "name": name,
                "cost": cost,
                "share": share,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cost import Cost

        d = dict(src_dict)
        card_microseconds = d.pop("card_microseconds")

        card_hours = d.pop("card_hours")

        month = d.pop("month")

        name = d.pop("name")

        cost = Cost.from_dict(d.pop("cost"))

        share = d.pop("share")

        usage_month = cls(
            card_microseconds=card_microseconds,
            card_hours=card_hours,
            month=month,
            name=name,
            cost=cost,
            share=share,
        )

        return usage_month
