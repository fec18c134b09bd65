from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.alert_severity import AlertSeverity, check_alert_severity
from ..types import UNSET, Unset

T = TypeVar("T", bound="AlertRouteWriteRequest")


@_attrs_define
class AlertRouteWriteRequest:
    """AlertRouteWriteRequest"""

    name: str
    severity: AlertSeverity
    receivers: list[str]
    matchers: list[str] | Unset = UNSET
    enabled: bool | Unset = True

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        severity: str = self.severity

        receivers = self.receivers

        matchers: list[str] | Unset = UNSET
        if not isinstance(self.matchers, Unset):
            matchers = self.matchers

        enabled = self.enabled

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "severity": severity,
                "receivers": receivers,
            }
        )
        if matchers is not UNSET:
            field_dict["matchers"] = matchers
        if enabled is not UNSET:
            field_dict["enabled"] = enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        severity = check_alert_severity(d.pop("severity"))

        receivers = cast(list[str], d.pop("receivers"))

        matchers = cast(list[str], d.pop("matchers", UNSET))

        enabled = d.pop("enabled", UNSET)

        alert_route_write_request = cls(
            name=name,
            severity=severity,
            receivers=receivers,
            matchers=matchers,
            enabled=enabled,
        )

        return alert_route_write_request
