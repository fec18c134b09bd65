from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.queue_difference_kind_enum import (
    QueueDifferenceKindEnum,
    check_queue_difference_kind_enum,
)

T = TypeVar("T", bound="QueueDifference")


@_attrs_define
class QueueDifference:
    """QueueDifference"""

    kind: QueueDifferenceKindEnum
    uid: str
    queue: str
    field: str
    chip: str
    before: str
    after: str
    message: str

    def to_dict(self) -> dict[str, Any]:
        kind: str = self.kind

        uid = self.uid

        queue = self.queue

        field = self.field

        chip = self.chip

        before = self.before

        after = self.after

        message = self.message

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "uid": uid,
                "queue": queue,
                "field": field,
                "chip": chip,
                "before": before,
                "after": after,
                "message": message,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = check_queue_difference_kind_enum(d.pop("kind"))

        uid = d.pop("uid")

        queue = d.pop("queue")

        field = d.pop("field")

        chip = d.pop("chip")

        before = d.pop("before")

        after = d.pop("after")

        message = d.pop("message")

        queue_difference = cls(
            kind=kind,
            uid=uid,
            queue=queue,
            field=field,
            chip=chip,
            before=before,
            after=after,
            message=message,
        )

        return queue_difference
