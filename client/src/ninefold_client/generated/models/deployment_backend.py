from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.replica import Replica


T = TypeVar("T", bound="DeploymentBackend")


@_attrs_define
class DeploymentBackend:
    """DeploymentBackend"""

    uid: str
    chips: list[str]
    replicas: list[Replica]

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        chips = self.chips

        replicas = []
        for replicas_item_data in self.replicas:
            replicas_item = replicas_item_data.to_dict()
            replicas.append(replicas_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "chips": chips,
                "replicas": replicas,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.replica import Replica

        d = dict(src_dict)
        uid = d.pop("uid")

        chips = cast(list[str], d.pop("chips"))

        replicas = []
        _replicas = d.pop("replicas")
        for replicas_item_data in _replicas:
            replicas_item = Replica.from_dict(replicas_item_data)

            replicas.append(replicas_item)

        deployment_backend = cls(
            uid=uid,
            chips=chips,
            replicas=replicas,
        )

        return deployment_backend
