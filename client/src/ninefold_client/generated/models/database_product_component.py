from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.condition import Condition, check_condition
from ..models.database_product_component_kind import (
    DatabaseProductComponentKind,
    check_database_product_component_kind,
)

if TYPE_CHECKING:
    from ..models.database_facts import DatabaseFacts


T = TypeVar("T", bound="DatabaseProductComponent")


@_attrs_define
class DatabaseProductComponent:
    """A part of the product."""

    kind: DatabaseProductComponentKind
    name: str
    condition: Condition
    facts: DatabaseFacts

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
        from ..models.database_facts import DatabaseFacts

        d = dict(src_dict)
        kind = check_database_product_component_kind(d.pop("kind"))

        name = d.pop("name")

        condition = check_condition(d.pop("condition"))

        facts = DatabaseFacts.from_dict(d.pop("facts"))

        database_product_component = cls(
            kind=kind,
            name=name,
            condition=condition,
            facts=facts,
        )

        return database_product_component
