from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="DefragmentationMove")


@_attrs_define
class DefragmentationMove:
    """DefragmentationMove"""

    number: int
    state: None | str
    team: str
    work: None | str
    cards: int
    chip: str
    from_nodes: list[str]
    to_nodes: list[str]
    lost_seconds: float
    cost: float

    def to_dict(self) -> dict[str, Any]:
        number = self.number

        state: None | str
        state = self.state

        team = self.team

        work: None | str
        work = self.work

        cards = self.cards

        chip = self.chip

        from_nodes = self.from_nodes

        to_nodes = self.to_nodes

        lost_seconds = self.lost_seconds

        cost = self.cost

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "number": number,
                "state": state,
                "team": team,
                "work": work,
                "cards": cards,
                "chip": chip,
                "from_nodes": from_nodes,
                "to_nodes": to_nodes,
                "lost_seconds": lost_seconds,
                "cost": cost,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        number = d.pop("number")

        def _parse_state(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        state = _parse_state(d.pop("state"))

        team = d.pop("team")

        def _parse_work(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        work = _parse_work(d.pop("work"))

        cards = d.pop("cards")

        chip = d.pop("chip")

        from_nodes = cast(list[str], d.pop("from_nodes"))

        to_nodes = cast(list[str], d.pop("to_nodes"))

        lost_seconds = d.pop("lost_seconds")

        cost = d.pop("cost")

        defragmentation_move = cls(
            number=number,
            state=state,
            team=team,
            work=work,
            cards=cards,
            chip=chip,
            from_nodes=from_nodes,
            to_nodes=to_nodes,
            lost_seconds=lost_seconds,
            cost=cost,
        )

        return defragmentation_move
