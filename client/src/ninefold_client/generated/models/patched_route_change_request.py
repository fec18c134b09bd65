from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.route_backend_write_request import RouteBackendWriteRequest


T = TypeVar("T", bound="PatchedRouteChangeRequest")


@_attrs_define
class PatchedRouteChangeRequest:
    """PatchedRouteChangeRequest"""

    backends: list[RouteBackendWriteRequest] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        backends: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.backends, Unset):
            backends = []
            for backends_item_data in self.backends:
                backends_item = backends_item_data.to_dict()
                backends.append(backends_item)

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if backends is not UNSET:
            field_dict["backends"] = backends

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.route_backend_write_request import RouteBackendWriteRequest

        d = dict(src_dict)
        _backends = d.pop("backends", UNSET)
        backends: list[RouteBackendWriteRequest] | Unset = UNSET
        if _backends is not UNSET:
            backends = []
            for backends_item_data in _backends:
                backends_item = RouteBackendWriteRequest.from_dict(backends_item_data)

                backends.append(backends_item)

        patched_route_change_request = cls(
            backends=backends,
        )

        return patched_route_change_request
