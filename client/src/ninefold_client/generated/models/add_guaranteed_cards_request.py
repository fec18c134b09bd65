from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="AddGuaranteedCardsRequest")


@_attrs_define
class AddGuaranteedCardsRequest:
    """AddGuaranteedCardsRequest"""

    chip: str
    cards: int

    def to_dict(self) -> dict[str, Any]:
        chip = self.chip

        cards = self.cards

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "chip": chip,
                "cards": cards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        chip = d.pop("chip")

        cards = d.pop("cards")

        add_guaranteed_cards_request = cls(
            chip=chip,
            cards=cards,
        )

        return add_guaranteed_cards_request
