from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="FaultAcknowledgeRequest")


@_attrs_define
class FaultAcknowledgeRequest:
    """FaultAcknowledgeRequest"""

    uids: list[str]
    note: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        uids = self.uids

        note = self.note

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uids": uids,
            }
        )
        if note is not UNSET:
            field_dict["note"] = note

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uids = cast(list[str], d.pop("uids"))

        note = d.pop("note", UNSET)

        fault_acknowledge_request = cls(
            uids=uids,
            note=note,
        )

        return fault_acknowledge_request
