from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="ChangePriorityChange")


@_attrs_define
class ChangePriorityChange:
    """A pending claim gets another priority."""

    kind: Literal["urgent"]
    claim: str
    priority: int

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        claim = self.claim

        priority = self.priority

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "claim": claim,
                "priority": priority,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = cast(Literal["urgent"], d.pop("kind"))
        if kind != "urgent":
            raise ValueError(f"kind must match const 'urgent', got '{kind}'")

        claim = d.pop("claim")

        priority = d.pop("priority")

        change_priority_change = cls(
            kind=kind,
            claim=claim,
            priority=priority,
        )

        return change_priority_change
