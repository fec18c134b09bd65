from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="QueueProcessFacts")


@_attrs_define
class QueueProcessFacts:
    """Of the worker and of the beat."""

    quiet_seconds: float | None
    unhealthy_controllers: int
    waiting_calls: int | None

    def to_dict(self) -> dict[str, Any]:
        quiet_seconds: float | None
        quiet_seconds = self.quiet_seconds

        unhealthy_controllers = self.unhealthy_controllers

        waiting_calls: int | None
        waiting_calls = self.waiting_calls

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "quiet_seconds": quiet_seconds,
                "unhealthy_controllers": unhealthy_controllers,
                "waiting_calls": waiting_calls,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_quiet_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        quiet_seconds = _parse_quiet_seconds(d.pop("quiet_seconds"))

        unhealthy_controllers = d.pop("unhealthy_controllers")

        def _parse_waiting_calls(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        waiting_calls = _parse_waiting_calls(d.pop("waiting_calls"))

        queue_process_facts = cls(
            quiet_seconds=quiet_seconds,
            unhealthy_controllers=unhealthy_controllers,
            waiting_calls=waiting_calls,
        )

        return queue_process_facts
