from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="RoleShape")


@_attrs_define
class RoleShape:
    """RoleShape"""

    name: str
    replicas: int
    cards: int
    cpu: int
    memory: int

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        replicas = self.replicas

        cards = self.cards

        cpu = self.cpu

        memory = self.memory

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "replicas": replicas,
                "cards": cards,
                "cpu": cpu,
                "memory": memory,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        replicas = d.pop("replicas")

        cards = d.pop("cards")

        cpu = d.pop("cpu")

        memory = d.pop("memory")

        role_shape = cls(
            name=name,
            replicas=replicas,
            cards=cards,
            cpu=cpu,
            memory=memory,
        )

        return role_shape
