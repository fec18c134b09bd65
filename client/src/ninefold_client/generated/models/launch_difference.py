from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.part_enum import PartEnum, check_part_enum

T = TypeVar("T", bound="LaunchDifference")


@_attrs_define
class LaunchDifference:
    """LaunchDifference"""

    path: str
    part: PartEnum
    left: None | str
    right: None | str

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        part: str = self.part

        left: None | str
        left = self.left

        right: None | str
        right = self.right

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "path": path,
                "part": part,
                "left": left,
                "right": right,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        part = check_part_enum(d.pop("part"))

        def _parse_left(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        left = _parse_left(d.pop("left"))

        def _parse_right(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        right = _parse_right(d.pop("right"))

        launch_difference = cls(
            path=path,
            part=part,
            left=left,
            right=right,
        )

        return launch_difference
