from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ExporterTargetOptions")


@_attrs_define
class ExporterTargetOptions:
    """An exporter; without ``node`` its own label must name the node."""

    url: str
    node: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        node = self.node

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "url": url,
            }
        )
        if node is not UNSET:
            field_dict["node"] = node

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        url = d.pop("url")

        node = d.pop("node", UNSET)

        exporter_target_options = cls(
            url=url,
            node=node,
        )

        return exporter_target_options
