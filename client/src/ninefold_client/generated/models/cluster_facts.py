from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="ClusterFacts")


@_attrs_define
class ClusterFacts:
    """ClusterFacts"""

    seen_at: datetime.datetime | None
    error: str

    def to_dict(self) -> dict[str, Any]:
        seen_at: None | str
        if isinstance(self.seen_at, datetime.datetime):
            seen_at = self.seen_at.isoformat()
        else:
            seen_at = self.seen_at

        error = self.error

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "seen_at": seen_at,
                "error": error,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_seen_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                seen_at_type_0 = datetime.datetime.fromisoformat(data)

                return seen_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        seen_at = _parse_seen_at(d.pop("seen_at"))

        error = d.pop("error")

        cluster_facts = cls(
            seen_at=seen_at,
            error=error,
        )

        return cluster_facts
