from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="NodeTokenCreateRequest")


@_attrs_define
class NodeTokenCreateRequest:
    """NodeTokenCreateRequest"""

    node: str

    def to_dict(self) -> dict[str, Any]:
        node = self.node

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "node": node,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        node = d.pop("node")

        node_token_create_request = cls(
            node=node,
        )

        return node_token_create_request
