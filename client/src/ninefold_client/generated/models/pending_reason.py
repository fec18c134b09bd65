from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.json_object import JsonObject
    from ..models.reason import Reason


T = TypeVar("T", bound="PendingReason")


@_attrs_define
class PendingReason:
    """PendingReason"""

    explanation: Reason
    numbers: JsonObject

    def to_dict(self) -> dict[str, Any]:
        explanation = self.explanation.to_dict()

        numbers = self.numbers.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "explanation": explanation,
                "numbers": numbers,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.json_object import JsonObject
        from ..models.reason import Reason

        d = dict(src_dict)
        explanation = Reason.from_dict(d.pop("explanation"))

        numbers = JsonObject.from_dict(d.pop("numbers"))

        pending_reason = cls(
            explanation=explanation,
            numbers=numbers,
        )

        return pending_reason
