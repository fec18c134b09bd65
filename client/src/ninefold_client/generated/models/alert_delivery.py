from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.delivery_state import DeliveryState, check_delivery_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason


T = TypeVar("T", bound="AlertDelivery")


@_attrs_define
class AlertDelivery:
    """AlertDelivery"""

    uid: str
    receiver: ObjectReference
    state: DeliveryState
    next_try_at: datetime.datetime
    error: Reason
    tries: int | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET
    status: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        receiver = self.receiver.to_dict()

        state: str = self.state

        next_try_at = self.next_try_at.isoformat()

        error = self.error.to_dict()

        tries = self.tries

        ended_at: None | str | Unset
        if isinstance(self.ended_at, Unset):
            ended_at = UNSET
        elif isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        status: int | None | Unset
        if isinstance(self.status, Unset):
            status = UNSET
        else:
            status = self.status

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "receiver": receiver,
                "state": state,
                "next_try_at": next_try_at,
                "error": error,
            }
        )
        if tries is not UNSET:
            field_dict["tries"] = tries
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at
        if status is not UNSET:
            field_dict["status"] = status

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        receiver = ObjectReference.from_dict(d.pop("receiver"))

        state = check_delivery_state(d.pop("state"))

        next_try_at = datetime.datetime.fromisoformat(d.pop("next_try_at"))

        error = Reason.from_dict(d.pop("error"))

        tries = d.pop("tries", UNSET)

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

        def _parse_status(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        status = _parse_status(d.pop("status", UNSET))

        alert_delivery = cls(
            uid=uid,
            receiver=receiver,
            state=state,
            next_try_at=next_try_at,
            error=error,
            tries=tries,
            ended_at=ended_at,
            status=status,
        )

        return alert_delivery
