from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="HostMount")


@_attrs_define
class HostMount:
    """A folder of the nodes that every pod sees, read-only."""

    host_path: str
    at: str

    def to_dict(self) -> dict[str, Any]:
        host_path = self.host_path

        at = self.at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "host_path": host_path,
                "at": at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        host_path = d.pop("host_path")

        at = d.pop("at")

        host_mount = cls(
            host_path=host_path,
            at=at,
        )

        return host_mount
