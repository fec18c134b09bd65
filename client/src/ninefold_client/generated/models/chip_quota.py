from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="ChipQuota")


@_attrs_define
class ChipQuota:
    """Reserved and guaranteed cards, and the cap."""

    reserved: int
    guaranteed: int
    cap: int | None

    def to_dict(self) -> dict[str, Any]:
        reserved = self.reserved

        guaranteed = self.guaranteed

        cap: int | None
        cap = self.cap

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "reserved": reserved,
                "guaranteed": guaranteed,
                "cap": cap,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        reserved = d.pop("reserved")

        guaranteed = d.pop("guaranteed")

        def _parse_cap(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        cap = _parse_cap(d.pop("cap"))

        chip_quota = cls(
            reserved=reserved,
            guaranteed=guaranteed,
            cap=cap,
        )

        return chip_quota
