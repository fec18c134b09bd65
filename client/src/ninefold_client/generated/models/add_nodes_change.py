from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="AddNodesChange")


@_attrs_define
class AddNodesChange:
    """More nodes like an existing one, empty and healthy."""

    kind: Literal["more_nodes"]
    like: str
    nodes: int

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        like = self.like

        nodes = self.nodes

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "like": like,
                "nodes": nodes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = cast(Literal["more_nodes"], d.pop("kind"))
        if kind != "more_nodes":
            raise ValueError(f"kind must match const 'more_nodes', got '{kind}'")

        like = d.pop("like")

        nodes = d.pop("nodes")

        add_nodes_change = cls(
            kind=kind,
            like=like,
            nodes=nodes,
        )

        return add_nodes_change
