from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PrometheusSourceOptions")


@_attrs_define
class PrometheusSourceOptions:
    """PrometheusSourceOptions"""

    url: str
    vendor: str
    selector: str | Unset = UNSET
    node_label: str | Unset = UNSET
    window: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        vendor = self.vendor

        selector = self.selector

        node_label = self.node_label

        window = self.window

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "url": url,
                "vendor": vendor,
            }
        )
        if selector is not UNSET:
            field_dict["selector"] = selector
        if node_label is not UNSET:
            field_dict["node_label"] = node_label
        if window is not UNSET:
            field_dict["window"] = window

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        url = d.pop("url")

        vendor = d.pop("vendor")

        selector = d.pop("selector", UNSET)

        node_label = d.pop("node_label", UNSET)

        window = d.pop("window", UNSET)

        prometheus_source_options = cls(
            url=url,
            vendor=vendor,
            selector=selector,
            node_label=node_label,
            window=window,
        )

        return prometheus_source_options
