from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.reason import Reason


T = TypeVar("T", bound="DeploymentEvent")


@_attrs_define
class DeploymentEvent:
    """DeploymentEvent"""

    replica: str
    from_state: str
    event: str
    to_state: str
    reason: Reason
    actor: str
    at: datetime.datetime

    def to_dict(self) -> dict[str, Any]:
        replica = self.replica

        from_state = self.from_state

        event = self.event

        to_state = self.to_state

        reason = self.reason.to_dict()

        actor = self.actor

        at = self.at.isoformat()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "replica": replica,
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
        replica = d.pop("replica")

        from_state = d.pop("from_state")

        event = d.pop("event")

        to_state = d.pop("to_state")

        reason = Reason.from_dict(d.pop("reason"))

        actor = d.pop("actor")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        deployment_event = cls(
            replica=replica,
            from_state=from_state,
            event=event,
            to_state=to_state,
            reason=reason,
            actor=actor,
            at=at,
        )

        return deployment_event
