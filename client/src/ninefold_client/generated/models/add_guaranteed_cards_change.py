from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="AddGuaranteedCardsChange")


@_attrs_define
class AddGuaranteedCardsChange:
    """So many more cards of the chip are guaranteed to the queue, and it may hold them; fewer if negative."""

    kind: Literal["more_cards"]
    queue: str
    chip: str
    cards: int

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        queue = self.queue

        chip = self.chip

        cards = self.cards

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "queue": queue,
                "chip": chip,
                "cards": cards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = cast(Literal["more_cards"], d.pop("kind"))
        if kind != "more_cards":
            raise ValueError(f"kind must match const 'more_cards', got '{kind}'")

        queue = d.pop("queue")

        chip = d.pop("chip")

        cards = d.pop("cards")

        add_guaranteed_cards_change = cls(
            kind=kind,
            queue=queue,
            chip=chip,
            cards=cards,
        )

        return add_guaranteed_cards_change
