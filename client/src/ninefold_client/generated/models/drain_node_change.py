from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="DrainNodeChange")


@_attrs_define
class DrainNodeChange:
    """The node is cordoned, and what runs there is evicted and requeued."""

    kind: Literal["drain_node"]
    node: str

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        node = self.node

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "node": node,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = cast(Literal["drain_node"], d.pop("kind"))
        if kind != "drain_node":
            raise ValueError(f"kind must match const 'drain_node', got '{kind}'")

        node = d.pop("node")

        drain_node_change = cls(
            kind=kind,
            node=node,
        )

        return drain_node_change
