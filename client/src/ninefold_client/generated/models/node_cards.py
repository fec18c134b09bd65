from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="NodeCards")


@_attrs_define
class NodeCards:
    """NodeCards"""

    node: str
    cards: int

    def to_dict(self) -> dict[str, Any]:
        node = self.node

        cards = self.cards

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "node": node,
                "cards": cards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        node = d.pop("node")

        cards = d.pop("cards")

        node_cards = cls(
            node=node,
            cards=cards,
        )

        return node_cards
