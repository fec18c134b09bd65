from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="SuppressedDecisionsEvidence")


@_attrs_define
class SuppressedDecisionsEvidence:
    """What the guard of health decisions suppressed."""

    place: str
    action: str
    decisions: int

    def to_dict(self) -> dict[str, Any]:
        place = self.place

        action = self.action

        decisions = self.decisions

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "place": place,
                "action": action,
                "decisions": decisions,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        place = d.pop("place")

        action = d.pop("action")

        decisions = d.pop("decisions")

        suppressed_decisions_evidence = cls(
            place=place,
            action=action,
            decisions=decisions,
        )

        return suppressed_decisions_evidence
