from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.blocking_workload import BlockingWorkload
    from ..models.reason import Reason


T = TypeVar("T", bound="ReclaimVictim")


@_attrs_define
class ReclaimVictim:
    """ReclaimVictim"""

    work: BlockingWorkload
    queue: str
    cards: int
    lost: str
    reason: Reason

    def to_dict(self) -> dict[str, Any]:
        work = self.work.to_dict()

        queue = self.queue

        cards = self.cards

        lost = self.lost

        reason = self.reason.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "work": work,
                "queue": queue,
                "cards": cards,
                "lost": lost,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.blocking_workload import BlockingWorkload
        from ..models.reason import Reason

        d = dict(src_dict)
        work = BlockingWorkload.from_dict(d.pop("work"))

        queue = d.pop("queue")

        cards = d.pop("cards")

        lost = d.pop("lost")

        reason = Reason.from_dict(d.pop("reason"))

        reclaim_victim = cls(
            work=work,
            queue=queue,
            cards=cards,
            lost=lost,
            reason=reason,
        )

        return reclaim_victim
