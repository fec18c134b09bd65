from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reason import Reason


T = TypeVar("T", bound="WebhookTry")


@_attrs_define
class WebhookTry:
    """WebhookTry"""

    at: datetime.datetime
    seconds: float
    error: Reason
    status: int | None | Unset = UNSET
    answer: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        seconds = self.seconds

        error = self.error.to_dict()

        status: int | None | Unset
        if isinstance(self.status, Unset):
            status = UNSET
        else:
            status = self.status

        answer = self.answer

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "at": at,
                "seconds": seconds,
                "error": error,
            }
        )
        if status is not UNSET:
            field_dict["status"] = status
        if answer is not UNSET:
            field_dict["answer"] = answer

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason import Reason

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        seconds = d.pop("seconds")

        error = Reason.from_dict(d.pop("error"))

        def _parse_status(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        status = _parse_status(d.pop("status", UNSET))

        answer = d.pop("answer", UNSET)

        webhook_try = cls(
            at=at,
            seconds=seconds,
            error=error,
            status=status,
            answer=answer,
        )

        return webhook_try
