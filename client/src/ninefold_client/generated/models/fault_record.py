from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="FaultRecord")


@_attrs_define
class FaultRecord:
    """The fault for which something was isolated."""

    uid: str
    origin: str
    code: str
    level: str
    message: str
    began_at: str
    cause: str
    remedy: str

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        origin = self.origin

        code = self.code

        level = self.level

        message = self.message

        began_at = self.began_at

        cause = self.cause

        remedy = self.remedy

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "origin": origin,
                "code": code,
                "level": level,
                "message": message,
                "began_at": began_at,
                "cause": cause,
                "remedy": remedy,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uid = d.pop("uid")

        origin = d.pop("origin")

        code = d.pop("code")

        level = d.pop("level")

        message = d.pop("message")

        began_at = d.pop("began_at")

        cause = d.pop("cause")

        remedy = d.pop("remedy")

        fault_record = cls(
            uid=uid,
            origin=origin,
            code=code,
            level=level,
            message=message,
            began_at=began_at,
            cause=cause,
            remedy=remedy,
        )

        return fault_record
