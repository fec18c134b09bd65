from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.alert_severity import AlertSeverity, check_alert_severity
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="AlertRoute")


@_attrs_define
class AlertRoute:
    """AlertRoute"""

    uid: str
    name: str
    matchers: list[str]
    receivers: list[ObjectReference]
    severity: AlertSeverity | Unset = UNSET
    enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        matchers = self.matchers

        receivers = []
        for receivers_item_data in self.receivers:
            receivers_item = receivers_item_data.to_dict()
            receivers.append(receivers_item)

        severity: str | Unset = UNSET
        if not isinstance(self.severity, Unset):
            severity = self.severity

        enabled = self.enabled

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "matchers": matchers,
                "receivers": receivers,
            }
        )
        if severity is not UNSET:
            field_dict["severity"] = severity
        if enabled is not UNSET:
            field_dict["enabled"] = enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        matchers = cast(list[str], d.pop("matchers"))

        receivers = []
        _receivers = d.pop("receivers")
        for receivers_item_data in _receivers:
            receivers_item = ObjectReference.from_dict(receivers_item_data)

            receivers.append(receivers_item)

        _severity = d.pop("severity", UNSET)
        severity: AlertSeverity | Unset
        if isinstance(_severity, Unset):
            severity = UNSET
        else:
            severity = check_alert_severity(_severity)

        enabled = d.pop("enabled", UNSET)

        alert_route = cls(
            uid=uid,
            name=name,
            matchers=matchers,
            receivers=receivers,
            severity=severity,
            enabled=enabled,
        )

        return alert_route
