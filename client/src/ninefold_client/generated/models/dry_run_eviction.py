from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.reason import Reason


T = TypeVar("T", bound="DryRunEviction")


@_attrs_define
class DryRunEviction:
    """DryRunEviction"""

    claim: str
    queue: str
    team: str
    work_name: str
    chip: str
    cards: int
    lost_seconds: int
    reason: Reason

    def to_dict(self) -> dict[str, Any]:
        claim = self.claim

        queue = self.queue

        team = self.team

        work_name = self.work_name

        chip = self.chip

        cards = self.cards

        lost_seconds = self.lost_seconds

        reason = self.reason.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "claim": claim,
                "queue": queue,
                "team": team,
                "work_name": work_name,
                "chip": chip,
                "cards": cards,
                "lost_seconds": lost_seconds,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason import Reason

        d = dict(src_dict)
        claim = d.pop("claim")

        queue = d.pop("queue")

        team = d.pop("team")

        work_name = d.pop("work_name")

        chip = d.pop("chip")

        cards = d.pop("cards")

        lost_seconds = d.pop("lost_seconds")

        reason = Reason.from_dict(d.pop("reason"))

        dry_run_eviction = cls(
            claim=claim,
            queue=queue,
            team=team,
            work_name=work_name,
            chip=chip,
            cards=cards,
            lost_seconds=lost_seconds,
            reason=reason,
        )

        return dry_run_eviction
