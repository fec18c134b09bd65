from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.delivery_state import DeliveryState, check_delivery_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.webhook_try import WebhookTry


T = TypeVar("T", bound="WebhookDelivery")


@_attrs_define
class WebhookDelivery:
    """WebhookDelivery"""

    uid: str
    webhook: ObjectReference
    event: str
    kind: str
    created_at: datetime.datetime
    next_try_at: datetime.datetime
    tries: list[WebhookTry]
    state: DeliveryState | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        webhook = self.webhook.to_dict()

        event = self.event

        kind = self.kind

        created_at = self.created_at.isoformat()

        next_try_at = self.next_try_at.isoformat()

        tries = []
        for tries_item_data in self.tries:
            tries_item = tries_item_data.to_dict()
            tries.append(tries_item)

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        ended_at: None | str | Unset
        if isinstance(self.ended_at, Unset):
            ended_at = UNSET
        elif isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "webhook": webhook,
                "event": event,
                "kind": kind,
                "created_at": created_at,
                "next_try_at": next_try_at,
                "tries": tries,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.webhook_try import WebhookTry

        d = dict(src_dict)
        uid = d.pop("uid")

        webhook = ObjectReference.from_dict(d.pop("webhook"))

        event = d.pop("event")

        kind = d.pop("kind")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        next_try_at = datetime.datetime.fromisoformat(d.pop("next_try_at"))

        tries = []
        _tries = d.pop("tries")
        for tries_item_data in _tries:
            tries_item = WebhookTry.from_dict(tries_item_data)

            tries.append(tries_item)

        _state = d.pop("state", UNSET)
        state: DeliveryState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_delivery_state(_state)

        def _parse_ended_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        ended_at = _parse_ended_at(d.pop("ended_at", UNSET))

        webhook_delivery = cls(
            uid=uid,
            webhook=webhook,
            event=event,
            kind=kind,
            created_at=created_at,
            next_try_at=next_try_at,
            tries=tries,
            state=state,
            ended_at=ended_at,
        )

        return webhook_delivery
