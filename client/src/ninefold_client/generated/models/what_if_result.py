from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.start_time_change import StartTimeChange


T = TypeVar("T", bound="WhatIfResult")


@_attrs_define
class WhatIfResult:
    """WhatIfResult"""

    own: None | StartTimeChange
    earlier: list[StartTimeChange]
    later: list[StartTimeChange]
    stopped: list[StartTimeChange]
    earlier_count: int
    later_count: int
    stopped_count: int
    starting_before: int
    starting_after: int
    waiting: int
    looked_at: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        from ..models.start_time_change import StartTimeChange

        own: dict[str, Any] | None
        if isinstance(self.own, StartTimeChange):
            own = self.own.to_dict()
        else:
            own = self.own

        earlier = []
        for earlier_item_data in self.earlier:
            earlier_item = earlier_item_data.to_dict()
            earlier.append(earlier_item)

        later = []
        for later_item_data in self.later:
            later_item = later_item_data.to_dict()
            later.append(later_item)

        stopped = []
        for stopped_item_data in self.stopped:
            stopped_item = stopped_item_data.to_dict()
            stopped.append(stopped_item)

        earlier_count = self.earlier_count

        later_count = self.later_count

        stopped_count = self.stopped_count

        starting_before = self.starting_before

        starting_after = self.starting_after

        waiting = self.waiting

        looked_at = self.looked_at

        seconds = self.seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "own": own,
                "earlier": earlier,
                "later": later,
                "stopped": stopped,
                "earlier_count": earlier_count,
                "later_count": later_count,
                "stopped_count": stopped_count,
                "starting_before": starting_before,
                "starting_after": starting_after,
                "waiting": waiting,
                "looked_at": looked_at,
                "seconds": seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.start_time_change import StartTimeChange

        d = dict(src_dict)

        def _parse_own(data: object) -> None | StartTimeChange:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                own_type_0 = StartTimeChange.from_dict(data)

                return own_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StartTimeChange, data)

        own = _parse_own(d.pop("own"))

        earlier = []
        _earlier = d.pop("earlier")
        for earlier_item_data in _earlier:
            earlier_item = StartTimeChange.from_dict(earlier_item_data)

            earlier.append(earlier_item)

        later = []
        _later = d.pop("later")
        for later_item_data in _later:
            later_item = StartTimeChange.from_dict(later_item_data)

            later.append(later_item)

        stopped = []
        _stopped = d.pop("stopped")
        for stopped_item_data in _stopped:
            stopped_item = StartTimeChange.from_dict(stopped_item_data)

            stopped.append(stopped_item)

        earlier_count = d.pop("earlier_count")

        later_count = d.pop("later_count")

        stopped_count = d.pop("stopped_count")

        starting_before = d.pop("starting_before")

        starting_after = d.pop("starting_after")

        waiting = d.pop("waiting")

        looked_at = d.pop("looked_at")

        seconds = d.pop("seconds")

        what_if_result = cls(
            own=own,
            earlier=earlier,
            later=later,
            stopped=stopped,
            earlier_count=earlier_count,
            later_count=later_count,
            stopped_count=stopped_count,
            starting_before=starting_before,
            starting_after=starting_after,
            waiting=waiting,
            looked_at=looked_at,
            seconds=seconds,
        )

        return what_if_result
