from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="RuleFiring")


@_attrs_define
class RuleFiring:
    """RuleFiring"""

    began_at: datetime.datetime
    fired_at: datetime.datetime
    ended_at: datetime.datetime | None
    worst: float

    def to_dict(self) -> dict[str, Any]:
        began_at = self.began_at.isoformat()

        fired_at = self.fired_at.isoformat()

        ended_at: None | str
        if isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        worst = self.worst

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "began_at": began_at,
                "fired_at": fired_at,
                "ended_at": ended_at,
                "worst": worst,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        began_at = datetime.datetime.fromisoformat(d.pop("began_at"))

        fired_at = datetime.datetime.fromisoformat(d.pop("fired_at"))

        def _parse_ended_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        ended_at = _parse_ended_at(d.pop("ended_at"))

        worst = d.pop("worst")

        rule_firing = cls(
            began_at=began_at,
            fired_at=fired_at,
            ended_at=ended_at,
            worst=worst,
        )

        return rule_firing
