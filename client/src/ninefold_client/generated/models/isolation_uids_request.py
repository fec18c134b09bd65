from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="IsolationUidsRequest")


@_attrs_define
class IsolationUidsRequest:
    """IsolationUidsRequest"""

    uids: list[str]

    def to_dict(self) -> dict[str, Any]:
        uids = self.uids

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uids": uids,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uids = cast(list[str], d.pop("uids"))

        isolation_uids_request = cls(
            uids=uids,
        )

        return isolation_uids_request
