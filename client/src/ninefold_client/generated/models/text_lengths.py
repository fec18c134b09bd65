from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="TextLengths")


@_attrs_define
class TextLengths:
    """In characters."""

    p50: int
    p95: int
    most: int

    def to_dict(self) -> dict[str, Any]:
        p50 = self.p50

        p95 = self.p95

        most = self.most

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "p50": p50,
                "p95": p95,
                "most": most,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        p50 = d.pop("p50")

        p95 = d.pop("p95")

        most = d.pop("most")

        text_lengths = cls(
            p50=p50,
            p95=p95,
            most=most,
        )

        return text_lengths
