from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.retained_item import RetainedItem
    from ..models.retention_removal import RetentionRemoval


T = TypeVar("T", bound="RetentionPlan")


@_attrs_define
class RetentionPlan:
    """RetentionPlan"""

    size: int
    removals: list[RetentionRemoval]
    spared: list[RetainedItem]

    def to_dict(self) -> dict[str, Any]:
        size = self.size

        removals = []
        for removals_item_data in self.removals:
            removals_item = removals_item_data.to_dict()
            removals.append(removals_item)

        spared = []
        for spared_item_data in self.spared:
            spared_item = spared_item_data.to_dict()
            spared.append(spared_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "size": size,
                "removals": removals,
                "spared": spared,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.retained_item import RetainedItem
        from ..models.retention_removal import RetentionRemoval

        d = dict(src_dict)
        size = d.pop("size")

        removals = []
        _removals = d.pop("removals")
        for removals_item_data in _removals:
            removals_item = RetentionRemoval.from_dict(removals_item_data)

            removals.append(removals_item)

        spared = []
        _spared = d.pop("spared")
        for spared_item_data in _spared:
            spared_item = RetainedItem.from_dict(spared_item_data)

            spared.append(spared_item)

        retention_plan = cls(
            size=size,
            removals=removals,
            spared=spared,
        )

        return retention_plan
