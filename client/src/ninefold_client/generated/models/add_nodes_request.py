from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="AddNodesRequest")


@_attrs_define
class AddNodesRequest:
    """AddNodesRequest"""

    like: str
    nodes: int

    def to_dict(self) -> dict[str, Any]:
        like = self.like

        nodes = self.nodes

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "like": like,
                "nodes": nodes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        like = d.pop("like")

        nodes = d.pop("nodes")

        add_nodes_request = cls(
            like=like,
            nodes=nodes,
        )

        return add_nodes_request
