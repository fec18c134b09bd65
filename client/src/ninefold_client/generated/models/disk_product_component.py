from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.condition import Condition, check_condition
from ..models.disk_product_component_kind import (
    DiskProductComponentKind,
    check_disk_product_component_kind,
)

if TYPE_CHECKING:
    from ..models.disk_facts import DiskFacts


T = TypeVar("T", bound="DiskProductComponent")


@_attrs_define
class DiskProductComponent:
    """A part of the product."""

    kind: DiskProductComponentKind
    name: str
    condition: Condition
    facts: DiskFacts

    def to_dict(self) -> dict[str, Any]:
        kind: str = self.kind

        name = self.name

        condition: str = self.condition

        facts = self.facts.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "name": name,
                "condition": condition,
                "facts": facts,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.disk_facts import DiskFacts

        d = dict(src_dict)
        kind = check_disk_product_component_kind(d.pop("kind"))

        name = d.pop("name")

        condition = check_condition(d.pop("condition"))

        facts = DiskFacts.from_dict(d.pop("facts"))

        disk_product_component = cls(
            kind=kind,
            name=name,
            condition=condition,
            facts=facts,
        )

        return disk_product_component
