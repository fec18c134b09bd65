from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="RetentionRemovalRecord")


@_attrs_define
class RetentionRemovalRecord:
    """What a retention run removed, in its details."""

    kind: str
    name: str
    size: int
    reason: str

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        name = self.name

        size = self.size

        reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "name": name,
                "size": size,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        name = d.pop("name")

        size = d.pop("size")

        reason = d.pop("reason")

        retention_removal_record = cls(
            kind=kind,
            name=name,
            size=size,
            reason=reason,
        )

        return retention_removal_record
