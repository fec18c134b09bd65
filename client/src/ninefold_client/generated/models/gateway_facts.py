from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="GatewayFacts")


@_attrs_define
class GatewayFacts:
    """GatewayFacts"""

    seen_at: datetime.datetime
    snapshot: int
    newest_snapshot: int | None
    newest_snapshot_at: datetime.datetime | None

    def to_dict(self) -> dict[str, Any]:
        seen_at = self.seen_at.isoformat()

        snapshot = self.snapshot

        newest_snapshot: int | None
        newest_snapshot = self.newest_snapshot

        newest_snapshot_at: None | str
        if isinstance(self.newest_snapshot_at, datetime.datetime):
            newest_snapshot_at = self.newest_snapshot_at.isoformat()
        else:
            newest_snapshot_at = self.newest_snapshot_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "seen_at": seen_at,
                "snapshot": snapshot,
                "newest_snapshot": newest_snapshot,
                "newest_snapshot_at": newest_snapshot_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        seen_at = datetime.datetime.fromisoformat(d.pop("seen_at"))

        snapshot = d.pop("snapshot")

        def _parse_newest_snapshot(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        newest_snapshot = _parse_newest_snapshot(d.pop("newest_snapshot"))

        def _parse_newest_snapshot_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                newest_snapshot_at_type_0 = datetime.datetime.fromisoformat(data)

                return newest_snapshot_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        newest_snapshot_at = _parse_newest_snapshot_at(d.pop("newest_snapshot_at"))

        gateway_facts = cls(
            seen_at=seen_at,
            snapshot=snapshot,
            newest_snapshot=newest_snapshot,
            newest_snapshot_at=newest_snapshot_at,
        )

        return gateway_facts
