from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.nested_reason import NestedReason


T = TypeVar("T", bound="ProblemErrorsItem")


@_attrs_define
class ProblemErrorsItem:
    """ProblemErrorsItem"""

    field: str
    message: str
    row: int | None | Unset = UNSET
    reason: NestedReason | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        field = self.field

        message = self.message

        row: int | None | Unset
        if isinstance(self.row, Unset):
            row = UNSET
        else:
            row = self.row

        reason: dict[str, Any] | Unset = UNSET
        if not isinstance(self.reason, Unset):
            reason = self.reason.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "field": field,
                "message": message,
            }
        )
        if row is not UNSET:
            field_dict["row"] = row
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.nested_reason import NestedReason

        d = dict(src_dict)
        field = d.pop("field")

        message = d.pop("message")

        def _parse_row(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        row = _parse_row(d.pop("row", UNSET))

        _reason = d.pop("reason", UNSET)
        reason: NestedReason | Unset
        if isinstance(_reason, Unset):
            reason = UNSET
        else:
            reason = NestedReason.from_dict(_reason)

        problem_errors_item = cls(
            field=field,
            message=message,
            row=row,
            reason=reason,
        )

        return problem_errors_item
