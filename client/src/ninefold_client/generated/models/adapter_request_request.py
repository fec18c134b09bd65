from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="AdapterRequestRequest")


@_attrs_define
class AdapterRequestRequest:
    """AdapterRequestRequest"""

    name: str
    model_version: str

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        model_version = self.model_version

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "model_version": model_version,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        model_version = d.pop("model_version")

        adapter_request_request = cls(
            name=name,
            model_version=model_version,
        )

        return adapter_request_request
