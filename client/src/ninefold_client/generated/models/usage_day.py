from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="UsageDay")


@_attrs_define
class UsageDay:
    """The records of one day (UTC), summed."""

    day: datetime.date
    team: ObjectReference
    queue: ObjectReference
    chip: str
    card_microseconds: int
    card_hours: str
    claims: int
    user: None | str | Unset = UNSET
    work_kind: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        day = self.day.isoformat()

        team = self.team.to_dict()

        queue = self.queue.to_dict()

        chip = self.chip

        card_microseconds = self.card_microseconds

        card_hours = self.card_hours

        claims = self.claims

        user: None | str | Unset
        if isinstance(self.user, Unset):
            user = UNSET
        else:
            user = self.user

        work_kind = self.work_kind

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "day": day,
                "team": team,
                "queue": queue,
                "chip": chip,
                "card_microseconds": card_microseconds,
                "card_hours": card_hours,
                "claims": claims,
            }
        )
        if user is not UNSET:
            field_dict["user"] = user
        if work_kind is not UNSET:
            field_dict["work_kind"] = work_kind

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        day = datetime.date.fromisoformat(d.pop("day"))

        team = ObjectReference.from_dict(d.pop("team"))

        queue = ObjectReference.from_dict(d.pop("queue"))

        chip = d.pop("chip")

        card_microseconds = d.pop("card_microseconds")

        card_hours = d.pop("card_hours")

        claims = d.pop("claims")

        def _parse_user(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user = _parse_user(d.pop("user", UNSET))

        work_kind = d.pop("work_kind", UNSET)

        usage_day = cls(
            day=day,
            team=team,
            queue=queue,
            chip=chip,
            card_microseconds=card_microseconds,
            card_hours=card_hours,
            claims=claims,
            user=user,
            work_kind=work_kind,
        )

        return usage_day
