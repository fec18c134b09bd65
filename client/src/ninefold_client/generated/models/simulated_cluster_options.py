from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.json_object import JsonObject


T = TypeVar("T", bound="SimulatedClusterOptions")


@_attrs_define
class SimulatedClusterOptions:
    """SimulatedClusterOptions"""

    home: str
    fleet: JsonObject
    speed: float | Unset = UNSET
    seed: int | Unset = UNSET
    failing: float | Unset = UNSET
    hours: float | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        home: str
        home = self.home

        fleet = self.fleet.to_dict()

        speed = self.speed

        seed = self.seed

        failing = self.failing

        hours = self.hours

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "home": home,
                "fleet": fleet,
            }
        )
        if speed is not UNSET:
            field_dict["speed"] = speed
        if seed is not UNSET:
            field_dict["seed"] = seed
        if failing is not UNSET:
            field_dict["failing"] = failing
        if hours is not UNSET:
            field_dict["hours"] = hours

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.json_object import JsonObject

        d = dict(src_dict)

        def _parse_home(data: object) -> str:
            return cast(str, data)

        home = _parse_home(d.pop("home"))

        fleet = JsonObject.from_dict(d.pop("fleet"))

        speed = d.pop("speed", UNSET)

        seed = d.pop("seed", UNSET)

        failing = d.pop("failing", UNSET)

        hours = d.pop("hours", UNSET)

        simulated_cluster_options = cls(
            home=home,
            fleet=fleet,
            speed=speed,
            seed=seed,
            failing=failing,
            hours=hours,
        )

        return simulated_cluster_options
