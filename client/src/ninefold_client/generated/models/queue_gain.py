from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="QueueGain")


@_attrs_define
class QueueGain:
    """QueueGain"""

    uid: str
    queue: str
    chip: str
    guaranteed_before: int
    guaranteed_after: int
    cap_before: int | None
    cap_after: int | None
    cards_now: int
    starting: list[str]

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        queue = self.queue

        chip = self.chip

        guaranteed_before = self.guaranteed_before

        guaranteed_after = self.guaranteed_after

        cap_before: int | None
        cap_before = self.cap_before

        cap_after: int | None
        cap_after = self.cap_after

        cards_now = self.cards_now

        starting = self.starting

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "queue": queue,
                "chip": chip,
                "guaranteed_before": guaranteed_before,
                "guaranteed_after": guaranteed_after,
                "cap_before": cap_before,
                "cap_after": cap_after,
                "cards_now": cards_now,
                "starting": starting,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uid = d.pop("uid")

        queue = d.pop("queue")

        chip = d.pop("chip")

        guaranteed_before = d.pop("guaranteed_before")

        guaranteed_after = d.pop("guaranteed_after")

        def _parse_cap_before(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        cap_before = _parse_cap_before(d.pop("cap_before"))

        def _parse_cap_after(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        cap_after = _parse_cap_after(d.pop("cap_after"))

        cards_now = d.pop("cards_now")

        starting = cast(list[str], d.pop("starting"))

        queue_gain = cls(
            uid=uid,
            queue=queue,
            chip=chip,
            guaranteed_before=guaranteed_before,
            guaranteed_after=guaranteed_after,
            cap_before=cap_before,
            cap_after=cap_after,
            cards_now=cards_now,
            starting=starting,
        )

        return queue_gain
