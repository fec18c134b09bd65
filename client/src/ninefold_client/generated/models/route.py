from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.route_backend import RouteBackend


T = TypeVar("T", bound="Route")


@_attrs_define
class Route:
    """Route"""

    uid: str
    name: str
    team: ObjectReference
    deployment: ObjectReference
    backends: list[RouteBackend]

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        team = self.team.to_dict()

        deployment = self.deployment.to_dict()

        backends = []
        for backends_item_data in self.backends:
            backends_item = backends_item_data.to_dict()
            backends.append(backends_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "team": team,
                "deployment": deployment,
                "backends": backends,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.route_backend import RouteBackend

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        team = ObjectReference.from_dict(d.pop("team"))

        deployment = ObjectReference.from_dict(d.pop("deployment"))

        backends = []
        _backends = d.pop("backends")
        for backends_item_data in _backends:
            backends_item = RouteBackend.from_dict(backends_item_data)

            backends.append(backends_item)

        route = cls(
            uid=uid,
            name=name,
            team=team,
            deployment=deployment,
            backends=backends,
        )

        return route
