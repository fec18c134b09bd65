from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="StartForecast")


@_attrs_define
class StartForecast:
    """StartForecast"""

    starts_at: datetime.datetime | None
    earliest: datetime.datetime | None
    latest: datetime.datetime | None
    chip: str
    nodes: int

    def to_dict(self) -> dict[str, Any]:
        starts_at: None | str
        if isinstance(self.starts_at, datetime.datetime):
            starts_at = self.starts_at.isoformat()
        else:
            starts_at = self.starts_at

        earliest: None | str
        if isinstance(self.earliest, datetime.datetime):
            earliest = self.earliest.isoformat()
        else:
            earliest = self.earliest

        latest: None | str
        if isinstance(self.latest, datetime.datetime):
            latest = self.latest.isoformat()
        else:
            latest = self.latest

        chip = self.chip

        nodes = self.nodes

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "starts_at": starts_at,
                "earliest": earliest,
                "latest": latest,
                "chip": chip,
                "nodes": nodes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_starts_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                starts_at_type_0 = datetime.datetime.fromisoformat(data)

                return starts_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        starts_at = _parse_starts_at(d.pop("starts_at"))

        def _parse_earliest(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                earliest_type_0 = datetime.datetime.fromisoformat(data)

                return earliest_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        earliest = _parse_earliest(d.pop("earliest"))

        def _parse_latest(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                latest_type_0 = datetime.datetime.fromisoformat(data)

                return latest_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        latest = _parse_latest(d.pop("latest"))

        chip = d.pop("chip")

        nodes = d.pop("nodes")

        start_forecast = cls(
            starts_at=starts_at,
            earliest=earliest,
            latest=latest,
            chip=chip,
            nodes=nodes,
        )

        return start_forecast
