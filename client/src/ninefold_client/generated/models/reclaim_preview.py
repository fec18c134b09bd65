from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.reason import Reason
    from ..models.reclaim_victim import ReclaimVictim


T = TypeVar("T", bound="ReclaimPreview")


@_attrs_define
class ReclaimPreview:
    """ReclaimPreview"""

    starts: bool
    reason: Reason
    cards: int
    losers: list[ReclaimVictim]

    def to_dict(self) -> dict[str, Any]:
        starts = self.starts

        reason = self.reason.to_dict()

        cards = self.cards

        losers = []
        for losers_item_data in self.losers:
            losers_item = losers_item_data.to_dict()
            losers.append(losers_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "starts": starts,
                "reason": reason,
                "cards": cards,
                "losers": losers,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason import Reason
        from ..models.reclaim_victim import ReclaimVictim

        d = dict(src_dict)
        starts = d.pop("starts")

        reason = Reason.from_dict(d.pop("reason"))

        cards = d.pop("cards")

        losers = []
        _losers = d.pop("losers")
        for losers_item_data in _losers:
            losers_item = ReclaimVictim.from_dict(losers_item_data)

            losers.append(losers_item)

        reclaim_preview = cls(
            starts=starts,
            reason=reason,
            cards=cards,
            losers=losers,
        )

        return reclaim_preview
