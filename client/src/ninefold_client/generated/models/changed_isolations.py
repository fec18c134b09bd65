from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.isolation import Isolation


T = TypeVar("T", bound="ChangedIsolations")


@_attrs_define
class ChangedIsolations:
    """Those that this changed."""

    isolations: list[Isolation]

    def to_dict(self) -> dict[str, Any]:
        isolations = []
        for isolations_item_data in self.isolations:
            isolations_item = isolations_item_data.to_dict()
            isolations.append(isolations_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "isolations": isolations,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.isolation import Isolation

        d = dict(src_dict)
        isolations = []
        _isolations = d.pop("isolations")
        for isolations_item_data in _isolations:
            isolations_item = Isolation.from_dict(isolations_item_data)

            isolations.append(isolations_item)

        changed_isolations = cls(
            isolations=isolations,
        )

        return changed_isolations
