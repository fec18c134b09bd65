from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="DatabaseFacts")


@_attrs_define
class DatabaseFacts:
    """DatabaseFacts"""

    connections: int
    most_connections: int
    bytes_: int
    version: str

    def to_dict(self) -> dict[str, Any]:
        connections = self.connections

        most_connections = self.most_connections

        bytes_ = self.bytes_

        version = self.version

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "connections": connections,
                "most_connections": most_connections,
                "bytes": bytes_,
                "version": version,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        connections = d.pop("connections")

        most_connections = d.pop("most_connections")

        bytes_ = d.pop("bytes")

        version = d.pop("version")

        database_facts = cls(
            connections=connections,
            most_connections=most_connections,
            bytes_=bytes_,
            version=version,
        )

        return database_facts
