from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.blocking_workload import BlockingWorkload
    from ..models.start_forecast import StartForecast


T = TypeVar("T", bound="StartTimeChange")


@_attrs_define
class StartTimeChange:
    """StartTimeChange"""

    work: BlockingWorkload
    gained: None | str
    before: None | StartForecast
    after: None | StartForecast

    def to_dict(self) -> dict[str, Any]:
        from ..models.start_forecast import StartForecast

        work = self.work.to_dict()

        gained: None | str
        gained = self.gained

        before: dict[str, Any] | None
        if isinstance(self.before, StartForecast):
            before = self.before.to_dict()
        else:
            before = self.before

        after: dict[str, Any] | None
        if isinstance(self.after, StartForecast):
            after = self.after.to_dict()
        else:
            after = self.after

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "work": work,
                "gained": gained,
                "before": before,
                "after": after,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.blocking_workload import BlockingWorkload
        from ..models.start_forecast import StartForecast

        d = dict(src_dict)
        work = BlockingWorkload.from_dict(d.pop("work"))

        def _parse_gained(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        gained = _parse_gained(d.pop("gained"))

        def _parse_before(data: object) -> None | StartForecast:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                before_type_0 = StartForecast.from_dict(data)

                return before_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StartForecast, data)

        before = _parse_before(d.pop("before"))

        def _parse_after(data: object) -> None | StartForecast:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                after_type_0 = StartForecast.from_dict(data)

                return after_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StartForecast, data)

        after = _parse_after(d.pop("after"))

        start_time_change = cls(
            work=work,
            gained=gained,
            before=before,
            after=after,
        )

        return start_time_change
