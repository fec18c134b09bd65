from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.loop_health import LoopHealth, check_loop_health

T = TypeVar("T", bound="Controller")


@_attrs_define
class Controller:
    """A controller and the record of its runs."""

    name: str
    health: LoopHealth
    interval_seconds: float
    lag_seconds: float | None
    last_seconds: float | None
    handled: int | None
    runs: int
    failed_runs: int
    failures: int
    error: str
    failed_at: datetime.datetime | None

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        health: str = self.health

        interval_seconds = self.interval_seconds

        lag_seconds: float | None
        lag_seconds = self.lag_seconds

        last_seconds: float | None
        last_seconds = self.last_seconds

        handled: int | None
        handled = self.handled

        runs = self.runs

        failed_runs = self.failed_runs

        failures = self.failures

        error = self.error

        failed_at: None | str
        if isinstance(self.failed_at, datetime.datetime):
            failed_at = self.failed_at.isoformat()
        else:
            failed_at = self.failed_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "health": health,
                "interval_seconds": interval_seconds,
                "lag_seconds": lag_seconds,
                "last_seconds": last_seconds,
                "handled": handled,
                "runs": runs,
                "failed_runs": failed_runs,
                "failures": failures,
                "error": error,
                "failed_at": failed_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        health = check_loop_health(d.pop("health"))

        interval_seconds = d.pop("interval_seconds")

        def _parse_lag_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        lag_seconds = _parse_lag_seconds(d.pop("lag_seconds"))

        def _parse_last_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        last_seconds = _parse_last_seconds(d.pop("last_seconds"))

        def _parse_handled(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        handled = _parse_handled(d.pop("handled"))

        runs = d.pop("runs")

        failed_runs = d.pop("failed_runs")

        failures = d.pop("failures")

        error = d.pop("error")

        def _parse_failed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                failed_at_type_0 = datetime.datetime.fromisoformat(data)

                return failed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        failed_at = _parse_failed_at(d.pop("failed_at"))

        controller = cls(
            name=name,
            health=health,
            interval_seconds=interval_seconds,
            lag_seconds=lag_seconds,
            last_seconds=last_seconds,
            handled=handled,
            runs=runs,
            failed_runs=failed_runs,
            failures=failures,
            error=error,
            failed_at=failed_at,
        )

        return controller
