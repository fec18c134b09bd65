from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="QueueCards")


@_attrs_define
class QueueCards:
    """Cards of one chip."""

    reserved: int
    guaranteed: int
    cap: int | None
    chip: str
    used: int
    borrowed: int
    lent: int

    def to_dict(self) -> dict[str, Any]:
        reserved = self.reserved

        guaranteed = self.guaranteed

        cap: int | None
        cap = self.cap

        chip = self.chip

        used = self.used

        borrowed = self.borrowed

        lent = self.lent

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "reserved": reserved,
                "guaranteed": guaranteed,
                "cap": cap,
                "chip": chip,
                "used": used,
                "borrowed": borrowed,
                "lent": lent,
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

        chip = d.pop("chip")

        used = d.pop("used")

        borrowed = d.pop("borrowed")

        lent = d.pop("lent")

        queue_cards = cls(
            reserved=reserved,
            guaranteed=guaranteed,
            cap=cap,
            chip=chip,
            used=used,
            borrowed=borrowed,
            lent=lent,
        )

        return queue_cards
