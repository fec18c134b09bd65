from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="UsageRecord")


@_attrs_define
class UsageRecord:
    """Cards of one chip that a claim held for a time, on one day (UTC)."""

    claim: str
    team: ObjectReference
    queue: ObjectReference
    chip: str
    cards: int
    since: datetime.datetime
    until: datetime.datetime
    card_microseconds: int
    card_hours: str
    user: None | str | Unset = UNSET
    work_kind: str | Unset = UNSET
    work_uid: str | Unset = UNSET
    work_name: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        claim = self.claim

        team = self.team.to_dict()

        queue = self.queue.to_dict()

        chip = self.chip

        cards = self.cards

        since = self.since.isoformat()

        until = self.until.isoformat()

        card_microseconds = self.card_microseconds

        card_hours = self.card_hours

        user: None | str | Unset
        if isinstance(self.user, Unset):
            user = UNSET
        else:
            user = self.user

        work_kind = self.work_kind

        work_uid = self.work_uid

        work_name = self.work_name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "claim": claim,
                "team": team,
                "queue": queue,
                "chip": chip,
                "cards": cards,
                "since": since,
                "until": until,
                "card_microseconds": card_microseconds,
                "card_hours": card_hours,
            }
        )
        if user is not UNSET:
            field_dict["user"] = user
        if work_kind is not UNSET:
            field_dict["work_kind"] = work_kind
        if work_uid is not UNSET:
            field_dict["work_uid"] = work_uid
        if work_name is not UNSET:
            field_dict["work_name"] = work_name

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        claim = d.pop("claim")

        team = ObjectReference.from_dict(d.pop("team"))

        queue = ObjectReference.from_dict(d.pop("queue"))

        chip = d.pop("chip")

        cards = d.pop("cards")

        since = datetime.datetime.fromisoformat(d.pop("since"))

        until = datetime.datetime.fromisoformat(d.pop("until"))

        card_microseconds = d.pop("card_microseconds")

        card_hours = d.pop("card_hours")

        def _parse_user(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user = _parse_user(d.pop("user", UNSET))

        work_kind = d.pop("work_kind", UNSET)

        work_uid = d.pop("work_uid", UNSET)

        work_name = d.pop("work_name", UNSET)

        usage_record = cls(
            claim=claim,
            team=team,
            queue=queue,
            chip=chip,
            cards=cards,
            since=since,
            until=until,
            card_microseconds=card_microseconds,
            card_hours=card_hours,
            user=user,
            work_kind=work_kind,
            work_uid=work_uid,
            work_name=work_name,
        )

        return usage_record
