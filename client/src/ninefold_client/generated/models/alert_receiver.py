from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.receiver_kind import ReceiverKind, check_receiver_kind
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reason import Reason


T = TypeVar("T", bound="AlertReceiver")


@_attrs_define
class AlertReceiver:
    """AlertReceiver"""

    uid: str
    name: str
    kind: ReceiverKind
    addresses: list[str]
    created_at: datetime.datetime
    last_error: Reason
    language: str | Unset = UNSET
    active: bool | Unset = UNSET
    created_by_name: str | Unset = UNSET
    tried_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        kind: str = self.kind

        addresses = self.addresses

        created_at = self.created_at.isoformat()

        last_error = self.last_error.to_dict()

        language = self.language

        active = self.active

        created_by_name = self.created_by_name

        tried_at: None | str | Unset
        if isinstance(self.tried_at, Unset):
            tried_at = UNSET
        elif isinstance(self.tried_at, datetime.datetime):
            tried_at = self.tried_at.isoformat()
        else:
            tried_at = self.tried_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "kind": kind,
                "addresses": addresses,
                "created_at": created_at,
                "last_error": last_error,
            }
        )
        if language is not UNSET:
            field_dict["language"] = language
        if active is not UNSET:
            field_dict["active"] = active
        if created_by_name is not UNSET:
            field_dict["created_by_name"] = created_by_name
        if tried_at is not UNSET:
            field_dict["tried_at"] = tried_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        kind = check_receiver_kind(d.pop("kind"))

        addresses = cast(list[str], d.pop("addresses"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        last_error = Reason.from_dict(d.pop("last_error"))

        language = d.pop("language", UNSET)

        active = d.pop("active", UNSET)

        created_by_name = d.pop("created_by_name", UNSET)

        def _parse_tried_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                tried_at_type_0 = datetime.datetime.fromisoformat(data)

                return tried_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        tried_at = _parse_tried_at(d.pop("tried_at", UNSET))

        alert_receiver = cls(
            uid=uid,
            name=name,
            kind=kind,
            addresses=addresses,
            created_at=created_at,
            last_error=last_error,
            language=language,
            active=active,
            created_by_name=created_by_name,
            tried_at=tried_at,
        )

        return alert_receiver
