from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="StorageQuotaRequest")


@_attrs_define
class StorageQuotaRequest:
    """StorageQuotaRequest"""

    limit: int | None

    def to_dict(self) -> dict[str, Any]:
        limit: int | None
        limit = self.limit

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "limit": limit,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_limit(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        limit = _parse_limit(d.pop("limit"))

        storage_quota_request = cls(
            limit=limit,
        )

        return storage_quota_request
