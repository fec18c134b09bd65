from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.alert_severity import AlertSeverity, check_alert_severity
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.alert_group_labels import AlertGroupLabels


T = TypeVar("T", bound="AlertGroup")


@_attrs_define
class AlertGroup:
    """AlertGroup"""

    uid: str
    rule: str
    title: str
    severity: AlertSeverity
    labels: AlertGroupLabels
    count: int
    most: int
    silenced: int
    began_at: datetime.datetime
    notified_at: datetime.datetime | None | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        rule = self.rule

        title = self.title

        severity: str = self.severity

        labels = self.labels.to_dict()

        count = self.count

        most = self.most

        silenced = self.silenced

        began_at = self.began_at.isoformat()

        notified_at: None | str | Unset
        if isinstance(self.notified_at, Unset):
            notified_at = UNSET
        elif isinstance(self.notified_at, datetime.datetime):
            notified_at = self.notified_at.isoformat()
        else:
            notified_at = self.notified_at

        ended_at: None | str | Unset
        if isinstance(self.ended_at, Unset):
            ended_at = UNSET
        elif isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "rule": rule,
                "title": title,
                "severity": severity,
                "labels": labels,
                "count": count,
                "most": most,
                "silenced": silenced,
                "began_at": began_at,
            }
        )
        if notified_at is not UNSET:
            field_dict["notified_at"] = notified_at
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.alert_group_labels import AlertGroupLabels

        d = dict(src_dict)
        uid = d.pop("uid")

        rule = d.pop("rule")

        title = d.pop("title")

        severity = check_alert_severity(d.pop("severity"))

        labels = AlertGroupLabels.from_dict(d.pop("labels"))

        count = d.pop("count")

        most = d.pop("most")

        silenced = d.pop("silenced")

        began_at = datetime.datetime.fromisoformat(d.pop("began_at"))

        def _parse_notified_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                notified_at_type_0 = datetime.datetime.fromisoformat(data)

                return notified_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        notified_at = _parse_notified_at(d.pop("notified_at", UNSET))

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

        alert_group = cls(
            uid=uid,
            rule=rule,
            title=title,
            severity=severity,
            labels=labels,
            count=count,
            most=most,
            silenced=silenced,
            began_at=began_at,
            notified_at=notified_at,
            ended_at=ended_at,
        )

        return alert_group
