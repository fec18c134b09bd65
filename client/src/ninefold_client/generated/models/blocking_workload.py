from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="BlockingWorkload")


@_attrs_define
class BlockingWorkload:
    """BlockingWorkload"""

    name: str
    team: str
    cards: int

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        team = self.team

        cards = self.cards

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "team": team,
                "cards": cards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        team = d.pop("team")

        cards = d.pop("cards")

        blocking_workload = cls(
            name=name,
            team=team,
            cards=cards,
        )

        return blocking_workload
