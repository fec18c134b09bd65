from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.card_cell import CardCell
    from ..models.topology_domain import TopologyDomain


T = TypeVar("T", bound="Topology")


@_attrs_define
class Topology:
    """Topology"""

    here: TopologyDomain
    below: list[TopologyDomain]
    cards: list[CardCell]

    def to_dict(self) -> dict[str, Any]:
        here = self.here.to_dict()

        below = []
        for below_item_data in self.below:
            below_item = below_item_data.to_dict()
            below.append(below_item)

        cards = []
        for cards_item_data in self.cards:
            cards_item = cards_item_data.to_dict()
            cards.append(cards_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "here": here,
                "below": below,
                "cards": cards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.card_cell import CardCell
        from ..models.topology_domain import TopologyDomain

        d = dict(src_dict)
        here = TopologyDomain.from_dict(d.pop("here"))

        below = []
        _below = d.pop("below")
        for below_item_data in _below:
            below_item = TopologyDomain.from_dict(below_item_data)

            below.append(below_item)

        cards = []
        _cards = d.pop("cards")
        for cards_item_data in _cards:
            cards_item = CardCell.from_dict(cards_item_data)

            cards.append(cards_item)

        topology = cls(
            here=here,
            below=below,
            cards=cards,
        )

        return topology
