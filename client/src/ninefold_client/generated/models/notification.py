from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.news_kind import NewsKind, check_news_kind
from ..models.notification_severity_enum import (
    NotificationSeverityEnum,
    check_notification_severity_enum,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.notification_subject import NotificationSubject
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason


T = TypeVar("T", bound="Notification")


@_attrs_define
class Notification:
    """Notification"""

    uid: str
    kind: NewsKind
    severity: NotificationSeverityEnum
    title: str
    reason: Reason
    subject: NotificationSubject
    team: None | ObjectReference
    link: str
    first_at: datetime.datetime
    at: datetime.datetime
    count: int | Unset = UNSET
    read_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        uid = self.uid

        kind: str = self.kind

        severity: str = self.severity

        title = self.title

        reason = self.reason.to_dict()

        subject = self.subject.to_dict()

        team: dict[str, Any] | None
        if isinstance(self.team, ObjectReference):
            team = self.team.to_dict()
        else:
            team = self.team

        link = self.link

        first_at = self.first_at.isoformat()

        at = self.at.isoformat()

        count = self.count

        read_at: None | str | Unset
        if isinstance(self.read_at, Unset):
            read_at = UNSET
        elif isinstance(self.read_at, datetime.datetime):
            read_at = self.read_at.isoformat()
        else:
            read_at = self.read_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "kind": kind,
                "severity": severity,
                "title": title,
                "reason": reason,
                "subject": subject,
                "team": team,
                "link": link,
                "first_at": first_at,
                "at": at,
            }
        )
        if count is not UNSET:
            field_dict["count"] = count
        if read_at is not UNSET:
            field_dict["read_at"] = read_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.notification_subject import NotificationSubject
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        kind = check_news_kind(d.pop("kind"))

        severity = check_notification_severity_enum(d.pop("severity"))

        title = d.pop("title")

        reason = Reason.from_dict(d.pop("reason"))

        subject = NotificationSubject.from_dict(d.pop("subject"))

        def _parse_team(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                team_type_0 = ObjectReference.from_dict(data)

                return team_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        team = _parse_team(d.pop("team"))

        link = d.pop("link")

        first_at = datetime.datetime.fromisoformat(d.pop("first_at"))

        at = datetime.datetime.fromisoformat(d.pop("at"))

        count = d.pop("count", UNSET)

        def _parse_read_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                read_at_type_0 = datetime.datetime.fromisoformat(data)

                return read_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        read_at = _parse_read_at(d.pop("read_at", UNSET))

        notification = cls(
            uid=uid,
            kind=kind,
            severity=severity,
            title=title,
            reason=reason,
            subject=subject,
            team=team,
            link=link,
            first_at=first_at,
            at=at,
            count=count,
            read_at=read_at,
        )

        return notification
