from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="AlertSilenceCreateRequest")


@_attrs_define
class AlertSilenceCreateRequest:
    """AlertSilenceCreateRequest"""

    name: str
    matchers: list[str]
    ends_at: datetime.datetime
    reason: str

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        matchers = self.matchers

        ends_at = self.ends_at.isoformat()

        reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "matchers": matchers,
                "ends_at": ends_at,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        matchers = cast(list[str], d.pop("matchers"))

        ends_at = datetime.datetime.fromisoformat(d.pop("ends_at"))

        reason = d.pop("reason")

        alert_silence_create_request = cls(
            name=name,
            matchers=matchers,
            ends_at=ends_at,
            reason=reason,
        )

        return alert_silence_create_request
