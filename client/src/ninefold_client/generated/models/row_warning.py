from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.row_warning_kind_enum import (
    RowWarningKindEnum,
    check_row_warning_kind_enum,
)

T = TypeVar("T", bound="RowWarning")


@_attrs_define
class RowWarning:
    """RowWarning"""

    kind: RowWarningKindEnum
    total: int
    rows: list[int]

    def to_dict(self) -> dict[str, Any]:
        kind: str = self.kind

        total = self.total

        rows = self.rows

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "total": total,
                "rows": rows,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = check_row_warning_kind_enum(d.pop("kind"))

        total = d.pop("total")

        rows = cast(list[int], d.pop("rows"))

        row_warning = cls(
            kind=kind,
            total=total,
            rows=rows,
        )

        return row_warning
