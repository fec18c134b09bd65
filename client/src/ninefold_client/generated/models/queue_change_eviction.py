from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.reason import Reason


T = TypeVar("T", bound="QueueChangeEviction")


@_attrs_define
class QueueChangeEviction:
    """QueueChangeEviction"""

    uid: str
    queue: str
    team: str
    work_name: str
    chip: str
    cards: int
    lost_seconds: int
    beneficiary: str
    reason: Reason

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        queue = self.queue

        team = self.team

        work_name = self.work_name

        chip = self.chip

        cards = self.cards

        lost_seconds = self.lost_seconds

        beneficiary = self.beneficiary

        reason = self.reason.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "queue": queue,
                "team": team,
                "work_name": work_name,
                "chip": chip,
                "cards": cards,
                "lost_seconds": lost_seconds,
                "beneficiary": beneficiary,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        queue = d.pop("queue")

        team = d.pop("team")

        work_name = d.pop("work_name")

        chip = d.pop("chip")

        cards = d.pop("cards")

        lost_seconds = d.pop("lost_seconds")

        beneficiary = d.pop("beneficiary")

        reason = Reason.from_dict(d.pop("reason"))

        queue_change_eviction = cls(
            uid=uid,
            queue=queue,
            team=team,
            work_name=work_name,
            chip=chip,
            cards=cards,
            lost_seconds=lost_seconds,
            beneficiary=beneficiary,
            reason=reason,
        )

        return queue_change_eviction
