from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.reason import Reason


T = TypeVar("T", bound="PipelineEvent")


@_attrs_define
class PipelineEvent:
    """PipelineEvent"""

    step: int | None
    from_state: str
    event: str
    to_state: str
    reason: Reason
    actor: str
    at: datetime.datetime

    def to_dict(self) -> dict[str, Any]:
        step: int | None
        step = self.step

        from_state = self.from_state

        event = self.event

        to_state = self.to_state

        reason = self.reason.to_dict()

        actor = self.actor

        at = self.at.isoformat()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "step": step,
                "from_state": from_state,
                "event": event,
                "to_state": to_state,
                "reason": reason,
                "actor": actor,
                "at": at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason import Reason

        d = dict(src_dict)

        def _parse_step(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        step = _parse_step(d.pop("step"))

        from_state = d.pop("from_state")

        event = d.pop("event")

        to_state = d.pop("to_state")

        reason = Reason.from_dict(d.pop("reason"))

        actor = d.pop("actor")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        pipeline_event = cls(
            step=step,
            from_state=from_state,
            event=event,
            to_state=to_state,
            reason=reason,
            actor=actor,
            at=at,
        )

        return pipeline_event
