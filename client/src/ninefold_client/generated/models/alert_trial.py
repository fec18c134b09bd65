from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="AlertTrial")


@_attrs_define
class AlertTrial:
    """AlertTrial"""

    now: int
    times: int | None
    things: int
    cut: bool

    def to_dict(self) -> dict[str, Any]:
        now = self.now

        times: int | None
        times = self.times

        things = self.things

        cut = self.cut

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "now": now,
                "times": times,
                "things": things,
                "cut": cut,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        now = d.pop("now")

        def _parse_times(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        times = _parse_times(d.pop("times"))

        things = d.pop("things")

        cut = d.pop("cut")

        alert_trial = cls(
            now=now,
            times=times,
            things=things,
            cut=cut,
        )

        return alert_trial
