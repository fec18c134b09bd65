from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.claim_explanation_free import ClaimExplanationFree
    from ..models.claim_forecast import ClaimForecast
    from ..models.json_object import JsonObject
    from ..models.object_reference import ObjectReference
    from ..models.queue_chip_status import QueueChipStatus
    from ..models.reason import Reason


T = TypeVar("T", bound="ClaimExplanation")


@_attrs_define
class ClaimExplanation:
    """ClaimExplanation"""

    state: str
    explanation: Reason
    numbers: JsonObject
    queue: ObjectReference
    shares: list[QueueChipStatus]
    free: ClaimExplanationFree
    place: int | None
    waiting: int
    forecast: ClaimForecast | None
    looked_at: datetime.datetime | None

    def to_dict(self) -> dict[str, Any]:
        from ..models.claim_forecast import ClaimForecast

        state = self.state

        explanation = self.explanation.to_dict()

        numbers = self.numbers.to_dict()

        queue = self.queue.to_dict()

        shares = []
        for shares_item_data in self.shares:
            shares_item = shares_item_data.to_dict()
            shares.append(shares_item)

        free = self.free.to_dict()

        place: int | None
        place = self.place

        waiting = self.waiting

        forecast: dict[str, Any] | None
        if isinstance(self.forecast, ClaimForecast):
            forecast = self.forecast.to_dict()
        else:
            forecast = self.forecast

        looked_at: None | str
        if isinstance(self.looked_at, datetime.datetime):
            looked_at = self.looked_at.isoformat()
        else:
            looked_at = self.looked_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "state": state,
                "explanation": explanation,
                "numbers": numbers,
                "queue": queue,
                "shares": shares,
                "free": free,
                "place": place,
                "waiting": waiting,
                "forecast": forecast,
                "looked_at": looked_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.claim_explanation_free import ClaimExplanationFree
        from ..models.claim_forecast import ClaimForecast
        from ..models.json_object import JsonObject
        from ..models.object_reference import ObjectReference
        from ..models.queue_chip_status import QueueChipStatus
        from ..models.reason import Reason

        d = dict(src_dict)
        state = d.pop("state")

        explanation = Reason.from_dict(d.pop("explanation"))

        numbers = JsonObject.from_dict(d.pop("numbers"))

        queue = ObjectReference.from_dict(d.pop("queue"))

        shares = []
        _shares = d.pop("shares")
        for shares_item_data in _shares:
            shares_item = QueueChipStatus.from_dict(shares_item_data)

            shares.append(shares_item)

        free = ClaimExplanationFree.from_dict(d.pop("free"))

        def _parse_place(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        place = _parse_place(d.pop("place"))

        waiting = d.pop("waiting")

        def _parse_forecast(data: object) -> ClaimForecast | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                forecast_type_0 = ClaimForecast.from_dict(data)

                return forecast_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ClaimForecast | None, data)

        forecast = _parse_forecast(d.pop("forecast"))

        def _parse_looked_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                looked_at_type_0 = datetime.datetime.fromisoformat(data)

                return looked_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        looked_at = _parse_looked_at(d.pop("looked_at"))

        claim_explanation = cls(
            state=state,
            explanation=explanation,
            numbers=numbers,
            queue=queue,
            shares=shares,
            free=free,
            place=place,
            waiting=waiting,
            forecast=forecast,
            looked_at=looked_at,
        )

        return claim_explanation
