from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="IsolationCreateRequest")


@_attrs_define
class IsolationCreateRequest:
    """IsolationCreateRequest"""

    reason: str
    nodes: list[str] | Unset = UNSET
    cards: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        reason = self.reason

        nodes: list[str] | Unset = UNSET
        if not isinstance(self.nodes, Unset):
            nodes = self.nodes

        cards: list[str] | Unset = UNSET
        if not isinstance(self.cards, Unset):
            cards = self.cards

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "reason": reason,
            }
        )
        if nodes is not UNSET:
            field_dict["nodes"] = nodes
        if cards is not UNSET:
            field_dict["cards"] = cards

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        reason = d.pop("reason")

        nodes = cast(list[str], d.pop("nodes", UNSET))

        cards = cast(list[str], d.pop("cards", UNSET))

        isolation_create_request = cls(
            reason=reason,
            nodes=nodes,
            cards=cards,
        )

        return isolation_create_request
