from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.alert_severity import AlertSeverity, check_alert_severity
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.alert_rule_document import AlertRuleDocument
    from ..models.reason import Reason


T = TypeVar("T", bound="AlertRule")


@_attrs_define
class AlertRule:
    """AlertRule"""

    uid: str
    name: str
    title: str
    severity: AlertSeverity
    document: AlertRuleDocument
    changed_at: datetime.datetime
    error: Reason
    enabled: bool | Unset = UNSET
    shipped: bool | Unset = UNSET
    firing: int | Unset = 0
    changed_by_name: str | Unset = UNSET
    evaluated_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        title = self.title

        severity: str = self.severity

        document = self.document.to_dict()

        changed_at = self.changed_at.isoformat()

        error = self.error.to_dict()

        enabled = self.enabled

        shipped = self.shipped

        firing = self.firing

        changed_by_name = self.changed_by_name

        evaluated_at: None | str | Unset
        if isinstance(self.evaluated_at, Unset):
            evaluated_at = UNSET
        elif isinstance(self.evaluated_at, datetime.datetime):
            evaluated_at = self.evaluated_at.isoformat()
        else:
            evaluated_at = self.evaluated_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "title": title,
                "severity": severity,
                "document": document,
                "changed_at": changed_at,
                "error": error,
            }
        )
        if enabled is not UNSET:
            field_dict["enabled"] = enabled
        if shipped is not UNSET:
            field_dict["shipped"] = shipped
        if firing is not UNSET:
            field_dict["firing"] = firing
        if changed_by_name is not UNSET:
            field_dict["changed_by_name"] = changed_by_name
        if evaluated_at is not UNSET:
            field_dict["evaluated_at"] = evaluated_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.alert_rule_document import AlertRuleDocument
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        title = d.pop("title")

        severity = check_alert_severity(d.pop("severity"))

        document = AlertRuleDocument.from_dict(d.pop("document"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        error = Reason.from_dict(d.pop("error"))

        enabled = d.pop("enabled", UNSET)

        shipped = d.pop("shipped", UNSET)

        firing = d.pop("firing", UNSET)

        changed_by_name = d.pop("changed_by_name", UNSET)

        def _parse_evaluated_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                evaluated_at_type_0 = datetime.datetime.fromisoformat(data)

                return evaluated_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        evaluated_at = _parse_evaluated_at(d.pop("evaluated_at", UNSET))

        alert_rule = cls(
            uid=uid,
            name=name,
            title=title,
            severity=severity,
            document=document,
            changed_at=changed_at,
            error=error,
            enabled=enabled,
            shipped=shipped,
            firing=firing,
            changed_by_name=changed_by_name,
            evaluated_at=evaluated_at,
        )

        return alert_rule
