from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.use_enum import UseEnum, check_use_enum

T = TypeVar("T", bound="CardCell")


@_attrs_define
class CardCell:
    """CardCell"""

    index: int
    chip: str
    use: UseEnum
    team: None | str
    queue: None | str
    work: None | str
    since: datetime.datetime | None

    def to_dict(self) -> dict[str, Any]:
        index = self.index

        chip = self.chip

        use: str = self.use

        team: None | str
        team = self.team

        queue: None | str
        queue = self.queue

        work: None | str
        work = self.work

        since: None | str
        if isinstance(self.since, datetime.datetime):
            since = self.since.isoformat()
        else:
            since = self.since

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "index": index,
                "chip": chip,
                "use": use,
                "team": team,
                "queue": queue,
                "work": work,
                "since": since,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        index = d.pop("index")

        chip = d.pop("chip")

        use = check_use_enum(d.pop("use"))

        def _parse_team(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        team = _parse_team(d.pop("team"))

        def _parse_queue(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        queue = _parse_queue(d.pop("queue"))

        def _parse_work(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        work = _parse_work(d.pop("work"))

        def _parse_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                since_type_0 = datetime.datetime.fromisoformat(data)

                return since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        since = _parse_since(d.pop("since"))

        card_cell = cls(
            index=index,
            chip=chip,
            use=use,
            team=team,
            queue=queue,
            work=work,
            since=since,
        )

        return card_cell
