from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.add_guaranteed_cards_request import AddGuaranteedCardsRequest
    from ..models.add_nodes_request import AddNodesRequest


T = TypeVar("T", bound="WhatIfChangesRequest")


@_attrs_define
class WhatIfChangesRequest:
    """What would be different: at least one of these."""

    more_cards: AddGuaranteedCardsRequest | Unset = UNSET
    more_nodes: AddNodesRequest | Unset = UNSET
    drain_node: str | Unset = UNSET
    priority: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        more_cards: dict[str, Any] | Unset = UNSET
        if not isinstance(self.more_cards, Unset):
            more_cards = self.more_cards.to_dict()

        more_nodes: dict[str, Any] | Unset = UNSET
        if not isinstance(self.more_nodes, Unset):
            more_nodes = self.more_nodes.to_dict()

        drain_node = self.drain_node

        priority = self.priority

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if more_cards is not UNSET:
            field_dict["more_cards"] = more_cards
        if more_nodes is not UNSET:
            field_dict["more_nodes"] = more_nodes
        if drain_node is not UNSET:
            field_dict["drain_node"] = drain_node
        if priority is not UNSET:
            field_dict["priority"] = priority

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.add_guaranteed_cards_request import AddGuaranteedCardsRequest
        from ..models.add_nodes_request import AddNodesRequest

        d = dict(src_dict)
        _more_cards = d.pop("more_cards", UNSET)
        more_cards: AddGuaranteedCardsRequest | Unset
        if isinstance(_more_cards, Unset):
            more_cards = UNSET
        else:
            more_cards = AddGuaranteedCardsRequest.from_dict(_more_cards)

        _more_nodes = d.pop("more_nodes", UNSET)
        more_nodes: AddNodesRequest | Unset
        if isinstance(_more_nodes, Unset):
            more_nodes = UNSET
        else:
            more_nodes = AddNodesRequest.from_dict(_more_nodes)

        drain_node = d.pop("drain_node", UNSET)

        priority = d.pop("priority", UNSET)

        what_if_changes_request = cls(
            more_cards=more_cards,
            more_nodes=more_nodes,
            drain_node=drain_node,
            priority=priority,
        )

        return what_if_changes_request
