from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.condition import Condition, check_condition
from ..models.outbox_product_component_kind import (
    OutboxProductComponentKind,
    check_outbox_product_component_kind,
)

if TYPE_CHECKING:
    from ..models.outbox_facts import OutboxFacts


T = TypeVar("T", bound="OutboxProductComponent")


@_attrs_define
class OutboxProductComponent:
    """A part of the product."""

    kind: OutboxProductComponentKind
    name: str
    condition: Condition
    facts: OutboxFacts

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
        from ..models.outbox_facts import OutboxFacts

        d = dict(src_dict)
        kind = check_outbox_product_component_kind(d.pop("kind"))

        name = d.pop("name")

        condition = check_condition(d.pop("condition"))

        facts = OutboxFacts.from_dict(d.pop("facts"))

        outbox_product_component = cls(
            kind=kind,
            name=name,
            condition=condition,
            facts=facts,
        )

        return outbox_product_component
