from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.flags_enum import FlagsEnum, check_flags_enum

if TYPE_CHECKING:
    from ..models.launch_difference import LaunchDifference
    from ..models.rendered_launch import RenderedLaunch


T = TypeVar("T", bound="LaunchComparison")


@_attrs_define
class LaunchComparison:
    """LaunchComparison"""

    flags: FlagsEnum
    renderings: list[RenderedLaunch]
    differences: list[LaunchDifference]
    changed_fields: list[str]

    def to_dict(self) -> dict[str, Any]:
        flags: str = self.flags

        renderings = []
        for renderings_item_data in self.renderings:
            renderings_item = renderings_item_data.to_dict()
            renderings.append(renderings_item)

        differences = []
        for differences_item_data in self.differences:
            differences_item = differences_item_data.to_dict()
            differences.append(differences_item)

        changed_fields = self.changed_fields

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "flags": flags,
                "renderings": renderings,
                "differences": differences,
                "changed_fields": changed_fields,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.launch_difference import LaunchDifference
        from ..models.rendered_launch import RenderedLaunch

        d = dict(src_dict)
        flags = check_flags_enum(d.pop("flags"))

        renderings = []
        _renderings = d.pop("renderings")
        for renderings_item_data in _renderings:
            renderings_item = RenderedLaunch.from_dict(renderings_item_data)

            renderings.append(renderings_item)

        differences = []
        _differences = d.pop("differences")
        for differences_item_data in _differences:
            differences_item = LaunchDifference.from_dict(differences_item_data)

            differences.append(differences_item)

        changed_fields = cast(list[str], d.pop("changed_fields"))

        launch_comparison = cls(
            flags=flags,
            renderings=renderings,
            differences=differences,
            changed_fields=changed_fields,
        )

        return launch_comparison
