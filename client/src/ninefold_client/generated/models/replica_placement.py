from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="ReplicaPlacement")


@_attrs_define
class ReplicaPlacement:
    """ReplicaPlacement"""

    role: str
    index: int
    node: str
    cards: list[int]

    def to_dict(self) -> dict[str, Any]:
        role = self.role

        index = self.index

        node = self.node

        cards = self.cards

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "role": role,
                "index": index,
                "node": node,
                "cards": cards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        role = d.pop("role")

        index = d.pop("index")

        node = d.pop("node")

        cards = cast(list[int], d.pop("cards"))

        replica_placement = cls(
            role=role,
            index=index,
            node=node,
            cards=cards,
        )

        return replica_placement
