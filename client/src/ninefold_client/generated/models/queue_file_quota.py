from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="QueueFileQuota")


@_attrs_define
class QueueFileQuota:
    """The quota of a queue for one chip; what is left out has its default."""

    reserved: int | Unset = UNSET
    guaranteed: int | Unset = UNSET
    cap: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        reserved = self.reserved

        guaranteed = self.guaranteed

        cap: int | None | Unset
        if isinstance(self.cap, Unset):
            cap = UNSET
        else:
            cap = self.cap

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if reserved is not UNSET:
            field_dict["reserved"] = reserved
        if guaranteed is not UNSET:
            field_dict["guaranteed"] = guaranteed
        if cap is not UNSET:
            field_dict["cap"] = cap

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        reserved = d.pop("reserved", UNSET)

        guaranteed = d.pop("guaranteed", UNSET)

        def _parse_cap(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        cap = _parse_cap(d.pop("cap", UNSET))

        queue_file_quota = cls(
            reserved=reserved,
            guaranteed=guaranteed,
            cap=cap,
        )

        return queue_file_quota
