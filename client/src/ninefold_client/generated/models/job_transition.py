from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reason import Reason


T = TypeVar("T", bound="JobTransition")


@_attrs_define
class JobTransition:
    """JobTransition"""

    from_state: str
    event: str
    to_state: str
    reason: Reason
    at: datetime.datetime
    actor: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from_state = self.from_state

        event = self.event

        to_state = self.to_state

        reason = self.reason.to_dict()

        at = self.at.isoformat()

        actor = self.actor

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "from_state": from_state,
                "event": event,
                "to_state": to_state,
                "reason": reason,
                "at": at,
            }
        )
        if actor is not UNSET:
            field_dict["actor"] = actor

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason import Reason

        d = dict(src_dict)
        from_state = d.pop("from_state")

        event = d.pop("event")

        to_state = d.pop("to_state")

        reason = Reason.from_dict(d.pop("reason"))

        at = datetime.datetime.fromisoformat(d.pop("at"))

        actor = d.pop("actor", UNSET)

        job_transition = cls(
            from_state=from_state,
            event=event,
            to_state=to_state,
            reason=reason,
            at=at,
            actor=actor,
        )

        return job_transition
