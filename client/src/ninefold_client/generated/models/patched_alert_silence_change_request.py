from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PatchedAlertSilenceChangeRequest")


@_attrs_define
class PatchedAlertSilenceChangeRequest:
    """PatchedAlertSilenceChangeRequest"""

    matchers: list[str] | Unset = UNSET
    ends_at: datetime.datetime | Unset = UNSET
    reason: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        matchers: list[str] | Unset = UNSET
        if not isinstance(self.matchers, Unset):
            matchers = self.matchers

        ends_at: str | Unset = UNSET
        if not isinstance(self.ends_at, Unset):
            ends_at = self.ends_at.isoformat()

        reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if matchers is not UNSET:
            field_dict["matchers"] = matchers
        if ends_at is not UNSET:
            field_dict["ends_at"] = ends_at
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        matchers = cast(list[str], d.pop("matchers", UNSET))

        _ends_at = d.pop("ends_at", UNSET)
        ends_at: datetime.datetime | Unset
        if isinstance(_ends_at, Unset):
            ends_at = UNSET
        else:
            ends_at = datetime.datetime.fromisoformat(_ends_at)

        reason = d.pop("reason", UNSET)

        patched_alert_silence_change_request = cls(
            matchers=matchers,
            ends_at=ends_at,
            reason=reason,
        )

        return patched_alert_silence_change_request
