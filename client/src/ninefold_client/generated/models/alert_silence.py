from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="AlertSilence")


@_attrs_define
class AlertSilence:
    """AlertSilence"""

    uid: str
    name: str
    matchers: list[str]
    reason: str
    began_at: datetime.datetime
    ends_at: datetime.datetime
    created_by_name: str
    ended_by_name: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        matchers = self.matchers

        reason = self.reason

        began_at = self.began_at.isoformat()

        ends_at = self.ends_at.isoformat()

        created_by_name = self.created_by_name

        ended_by_name = self.ended_by_name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "matchers": matchers,
                "reason": reason,
                "began_at": began_at,
                "ends_at": ends_at,
                "created_by_name": created_by_name,
            }
        )
        if ended_by_name is not UNSET:
            field_dict["ended_by_name"] = ended_by_name

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        matchers = cast(list[str], d.pop("matchers"))

        reason = d.pop("reason")

        began_at = datetime.datetime.fromisoformat(d.pop("began_at"))

        ends_at = datetime.datetime.fromisoformat(d.pop("ends_at"))

        created_by_name = d.pop("created_by_name")

        ended_by_name = d.pop("ended_by_name", UNSET)

        alert_silence = cls(
            uid=uid,
            name=name,
            matchers=matchers,
            reason=reason,
            began_at=began_at,
            ends_at=ends_at,
            created_by_name=created_by_name,
            ended_by_name=ended_by_name,
        )

        return alert_silence
