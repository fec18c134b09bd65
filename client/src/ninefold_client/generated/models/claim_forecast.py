from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.blocking_workload import BlockingWorkload


T = TypeVar("T", bound="ClaimForecast")


@_attrs_define
class ClaimForecast:
    """ClaimForecast"""

    starts_at: datetime.datetime | None
    earliest: datetime.datetime | None
    latest: datetime.datetime | None
    chip: str
    nodes: int
    blocked_by: list[BlockingWorkload]
    others: int
    place: int | None
    created_at: datetime.datetime | None
    beyond: bool
    unseen: bool

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

        blocked_by = []
        for blocked_by_item_data in self.blocked_by:
            blocked_by_item = blocked_by_item_data.to_dict()
            blocked_by.append(blocked_by_item)

        others = self.others

        place: int | None
        place = self.place

        created_at: None | str
        if isinstance(self.created_at, datetime.datetime):
            created_at = self.created_at.isoformat()
        else:
            created_at = self.created_at

        beyond = self.beyond

        unseen = self.unseen

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "starts_at": starts_at,
                "earliest": earliest,
                "latest": latest,
                "chip": chip,
                "nodes": nodes,
                "blocked_by": blocked_by,
                "others": others,
                "place": place,
                "created_at": created_at,
                "beyond": beyond,
                "unseen": unseen,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.blocking_workload import BlockingWorkload

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

        blocked_by = []
        _blocked_by = d.pop("blocked_by")
        for blocked_by_item_data in _blocked_by:
            blocked_by_item = BlockingWorkload.from_dict(blocked_by_item_data)

            blocked_by.append(blocked_by_item)

        others = d.pop("others")

        def _parse_place(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        place = _parse_place(d.pop("place"))

        def _parse_created_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                created_at_type_0 = datetime.datetime.fromisoformat(data)

                return created_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        created_at = _parse_created_at(d.pop("created_at"))

        beyond = d.pop("beyond")

        unseen = d.pop("unseen")

        claim_forecast = cls(
            starts_at=starts_at,
            earliest=earliest,
            latest=latest,
            chip=chip,
            nodes=nodes,
            blocked_by=blocked_by,
            others=others,
            place=place,
            created_at=created_at,
            beyond=beyond,
            unseen=unseen,
        )

        return claim_forecast
