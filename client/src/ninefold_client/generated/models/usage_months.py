from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.cost import Cost
    from ..models.usage_month import UsageMonth


T = TypeVar("T", bound="UsageMonths")


@_attrs_define
class UsageMonths:
    """Months with what is held right now, counted up to ``at``."""

    card_microseconds: int
    card_hours: str
    first: datetime.date
    last: datetime.date
    at: datetime.datetime
    currency: str
    cost: Cost
    rows: list[UsageMonth]

    def to_dict(self) -> dict[str, Any]:
        card_microseconds = self.card_microseconds

        card_hours = self.card_hours

        first = self.first.isoformat()

        last = self.last.isoformat()

        at = self.at.isoformat()

        currency = self.currency

        cost = self.cost.to_dict()

        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "card_microseconds": card_microseconds,
                "card_hours": card_hours,
                "first": first,
                "last": last,
                "at": at,
                "currency": currency,
                "cost": cost,
                "rows": rows,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cost import Cost
        from ..models.usage_month import UsageMonth

        d = dict(src_dict)
        card_microseconds = d.pop("card_microseconds")

        card_hours = d.pop("card_hours")

        first = datetime.date.fromisoformat(d.pop("first"))

        last = datetime.date.fromisoformat(d.pop("last"))

        at = datetime.datetime.fromisoformat(d.pop("at"))

        currency = d.pop("currency")

        cost = Cost.from_dict(d.pop("cost"))

        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = UsageMonth.from_dict(rows_item_data)

            rows.append(rows_item)

        usage_months = cls(
            card_microseconds=card_microseconds,
            card_hours=card_hours,
            first=first,
            last=last,
            at=at,
            currency=currency,
            cost=cost,
            rows=rows,
        )

        return usage_months
