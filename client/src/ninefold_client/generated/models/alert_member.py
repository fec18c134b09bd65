from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.alert_state import AlertState, check_alert_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.alert_member_labels import AlertMemberLabels


T = TypeVar("T", bound="AlertMember")


@_attrs_define
class AlertMember:
    """AlertMember"""

    uid: str
    labels: AlertMemberLabels
    began_at: datetime.datetime
    state: AlertState | Unset = UNSET
    value: float | None | Unset = UNSET
    href: str | Unset = UNSET
    fired_at: datetime.datetime | None | Unset = UNSET
    resolved_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        labels = self.labels.to_dict()

        began_at = self.began_at.isoformat()

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        value: float | None | Unset
        if isinstance(self.value, Unset):
            value = UNSET
        else:
            value = self.value

        href = self.href

        fired_at: None | str | Unset
        if isinstance(self.fired_at, Unset):
            fired_at = UNSET
        elif isinstance(self.fired_at, datetime.datetime):
            fired_at = self.fired_at.isoformat()
        else:
            fired_at = self.fired_at

        resolved_at: None | str | Unset
        if isinstance(self.resolved_at, Unset):
            resolved_at = UNSET
        elif isinstance(self.resolved_at, datetime.datetime):
            resolved_at = self.resolved_at.isoformat()
        else:
            resolved_at = self.resolved_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "labels": labels,
                "began_at": began_at,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if value is not UNSET:
            field_dict["value"] = value
        if href is not UNSET:
            field_dict["href"] = href
        if fired_at is not UNSET:
            field_dict["fired_at"] = fired_at
        if resolved_at is not UNSET:
            field_dict["resolved_at"] = resolved_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.alert_member_labels import AlertMemberLabels

        d = dict(src_dict)
        uid = d.pop("uid")

        labels = AlertMemberLabels.from_dict(d.pop("labels"))

        began_at = datetime.datetime.fromisoformat(d.pop("began_at"))

        _state = d.pop("state", UNSET)
        state: AlertState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_alert_state(_state)

        def _parse_value(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        value = _parse_value(d.pop("value", UNSET))

        href = d.pop("href", UNSET)

        def _parse_fired_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                fired_at_type_0 = datetime.datetime.fromisoformat(data)

                return fired_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        fired_at = _parse_fired_at(d.pop("fired_at", UNSET))

        def _parse_resolved_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                resolved_at_type_0 = datetime.datetime.fromisoformat(data)

                return resolved_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        resolved_at = _parse_resolved_at(d.pop("resolved_at", UNSET))

        alert_member = cls(
            uid=uid,
            labels=labels,
            began_at=began_at,
            state=state,
            value=value,
            href=href,
            fired_at=fired_at,
            resolved_at=resolved_at,
        )

        return alert_member
