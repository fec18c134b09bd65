from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="RouteBackend")


@_attrs_define
class RouteBackend:
    """RouteBackend"""

    deployment: ObjectReference
    revision: int
    weight: int

    def to_dict(self) -> dict[str, Any]:
        deployment = self.deployment.to_dict()

        revision = self.revision

        weight = self.weight

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "deployment": deployment,
                "revision": revision,
                "weight": weight,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        deployment = ObjectReference.from_dict(d.pop("deployment"))

        revision = d.pop("revision")

        weight = d.pop("weight")

        route_backend = cls(
            deployment=deployment,
            revision=revision,
            weight=weight,
        )

        return route_backend
