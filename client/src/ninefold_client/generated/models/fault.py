from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.origin_enum import OriginEnum, check_origin_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason


T = TypeVar("T", bound="Fault")


@_attrs_define
class Fault:
    """Fault"""

    uid: str
    cluster: str
    node: ObjectReference
    card: None | ObjectReference
    origin: OriginEnum
    code: str
    level: int
    message: Reason
    cause: str
    remedy: str
    began_at: datetime.datetime
    reported_at: datetime.datetime
    vendor: str | Unset = UNSET
    count: int | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET
    acknowledged_at: datetime.datetime | None | Unset = UNSET
    acknowledged_by_name: str | Unset = UNSET
    note: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        uid = self.uid

        cluster = self.cluster

        node = self.node.to_dict()

        card: dict[str, Any] | None
        if isinstance(self.card, ObjectReference):
            card = self.card.to_dict()
        else:
            card = self.card

        origin: str = self.origin

        code = self.code

        level = self.level

        message = self.message.to_dict()

        cause = self.cause

        remedy = self.remedy

        began_at = self.began_at.isoformat()

        reported_at = self.reported_at.isoformat()

        vendor = self.vendor

        count = self.count

        ended_at: None | str | Unset
        if isinstance(self.ended_at, Unset):
            ended_at = UNSET
        elif isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        acknowledged_at: None | str | Unset
        if isinstance(self.acknowledged_at, Unset):
            acknowledged_at = UNSET
        elif isinstance(self.acknowledged_at, datetime.datetime):
            acknowledged_at = self.acknowledged_at.isoformat()
        else:
            acknowledged_at = self.acknowledged_at

        acknowledged_by_name = self.acknowledged_by_name

        note = self.note

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "cluster": cluster,
                "node": node,
                "card": card,
                "origin": origin,
                "code": code,
                "level": level,
                "message": message,
                "cause": cause,
                "remedy": remedy,
                "began_at": began_at,
                "reported_at": reported_at,
            }
        )
        if vendor is not UNSET:
            field_dict["vendor"] = vendor
        if count is not UNSET:
            field_dict["count"] = count
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at
        if acknowledged_at is not UNSET:
            field_dict["acknowledged_at"] = acknowledged_at
        if acknowledged_by_name is not UNSET:
            field_dict["acknowledged_by_name"] = acknowledged_by_name
        if note is not UNSET:
            field_dict["note"] = note

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        cluster = d.pop("cluster")

        node = ObjectReference.from_dict(d.pop("node"))

        def _parse_card(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                card_type_0 = ObjectReference.from_dict(data)

                return card_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        card = _parse_card(d.pop("card"))

        origin = check_origin_enum(d.pop("origin"))

        code = d.pop("code")

        level = d.pop("level")

        message = Reason.from_dict(d.pop("message"))

        cause = d.pop("cause")

        remedy = d.pop("remedy")

        began_at = datetime.datetime.fromisoformat(d.pop("began_at"))

        reported_at = datetime.datetime.fromisoformat(d.pop("reported_at"))

        vendor = d.pop("vendor", UNSET)

        count = d.pop("count", UNSET)

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

        def _parse_acknowledged_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                acknowledged_at_type_0 = datetime.datetime.fromisoformat(data)

                return acknowledged_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        acknowledged_at = _parse_acknowledged_at(d.pop("acknowledged_at", UNSET))

        acknowledged_by_name = d.pop("acknowledged_by_name", UNSET)

        note = d.pop("note", UNSET)

        fault = cls(
            uid=uid,
            cluster=cluster,
            node=node,
            card=card,
            origin=origin,
            code=code,
            level=level,
            message=message,
            cause=cause,
            remedy=remedy,
            began_at=began_at,
            reported_at=reported_at,
            vendor=vendor,
            count=count,
            ended_at=ended_at,
            acknowledged_at=acknowledged_at,
            acknowledged_by_name=acknowledged_by_name,
            note=note,
        )

        return fault
