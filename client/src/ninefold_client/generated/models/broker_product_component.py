from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.broker_product_component_kind import (
    BrokerProductComponentKind,
    check_broker_product_component_kind,
)
from ..models.condition import Condition, check_condition

if TYPE_CHECKING:
    from ..models.broker_facts import BrokerFacts


T = TypeVar("T", bound="BrokerProductComponent")


@_attrs_define
class BrokerProductComponent:
    """A part of the product."""

    kind: BrokerProductComponentKind
    name: str
    condition: Condition
    facts: BrokerFacts

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
        from ..models.broker_facts import BrokerFacts

        d = dict(src_dict)
        kind = check_broker_product_component_kind(d.pop("kind"))

        name = d.pop("name")

        condition = check_condition(d.pop("condition"))

        facts = BrokerFacts.from_dict(d.pop("facts"))

        broker_product_component = cls(
            kind=kind,
            name=name,
            condition=condition,
            facts=facts,
        )

        return broker_product_component
