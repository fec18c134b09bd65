from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.notice_alert_labels import NoticeAlertLabels


T = TypeVar("T", bound="NoticeAlert")


@_attrs_define
class NoticeAlert:
    """An alert that a notice names."""

    labels: NoticeAlertLabels
    value: float | None
    since: str
    link: str

    def to_dict(self) -> dict[str, Any]:
        labels = self.labels.to_dict()

        value: float | None
        value = self.value

        since = self.since

        link = self.link

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "labels": labels,
                "value": value,
                "since": since,
                "link": link,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.notice_alert_labels import NoticeAlertLabels

        d = dict(src_dict)
        labels = NoticeAlertLabels.from_dict(d.pop("labels"))

        def _parse_value(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        value = _parse_value(d.pop("value"))

        since = d.pop("since")

        link = d.pop("link")

        notice_alert = cls(
            labels=labels,
            value=value,
            since=since,
            link=link,
        )

        return notice_alert
