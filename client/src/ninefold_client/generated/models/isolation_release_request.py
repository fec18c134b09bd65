from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="IsolationReleaseRequest")


@_attrs_define
class IsolationReleaseRequest:
    """IsolationReleaseRequest"""

    uids: list[str]
    reason: str

    def to_dict(self) -> dict[str, Any]:
        uids = self.uids

        reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uids": uids,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uids = cast(list[str], d.pop("uids"))

        reason = d.pop("reason")

        isolation_release_request = cls(
            uids=uids,
            reason=reason,
        )

        return isolation_release_request
