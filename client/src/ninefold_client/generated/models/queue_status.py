from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="QueueStatus")


@_attrs_define
class QueueStatus:
    """QueueStatus"""

    reserved: int
    guaranteed: int
    cap: int | None
    used: int
    borrowed: int
    lent: int
    idle: int

    def to_dict(self) -> dict[str, Any]:
        reserved = self.reserved

        guaranteed = self.guaranteed

        cap: int | None
        cap = self.cap

        used = self.used

        borrowed = self.borrowed

        lent = self.lent

        idle = self.idle

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "reserved": reserved,
                "guaranteed": guaranteed,
                "cap": cap,
                "used": used,
                "borrowed": borrowed,
                "lent": lent,
                "idle": idle,
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

        used = d.pop("used")

        borrowed = d.pop("borrowed")

        lent = d.pop("lent")

        idle = d.pop("idle")

        queue_status = cls(
            reserved=reserved,
            guaranteed=guaranteed,
            cap=cap,
            used=used,
            borrowed=borrowed,
            lent=lent,
            idle=idle,
        )

        return queue_status
