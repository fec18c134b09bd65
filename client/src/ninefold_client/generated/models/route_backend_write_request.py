from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="RouteBackendWriteRequest")


@_attrs_define
class RouteBackendWriteRequest:
    """RouteBackendWriteRequest"""

    deployment: str
    weight: int

    def to_dict(self) -> dict[str, Any]:
        deployment = self.deployment

        weight = self.weight

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "deployment": deployment,
                "weight": weight,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        deployment = d.pop("deployment")

        weight = d.pop("weight")

        route_backend_write_request = cls(
            deployment=deployment,
            weight=weight,
        )

        return route_backend_write_request
