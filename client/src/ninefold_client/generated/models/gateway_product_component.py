from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.condition import Condition, check_condition
from ..models.gateway_product_component_kind import (
    GatewayProductComponentKind,
    check_gateway_product_component_kind,
)

if TYPE_CHECKING:
    from ..models.gateway_facts import GatewayFacts


T = TypeVar("T", bound="GatewayProductComponent")


@_attrs_define
class GatewayProductComponent:
    """A part of the product."""

    kind: GatewayProductComponentKind
    name: str
    condition: Condition
    facts: GatewayFacts

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
        from ..models.gateway_facts import GatewayFacts

        d = dict(src_dict)
        kind = check_gateway_product_component_kind(d.pop("kind"))

        name = d.pop("name")

        condition = check_condition(d.pop("condition"))

        facts = GatewayFacts.from_dict(d.pop("facts"))

        gateway_product_component = cls(
            kind=kind,
            name=name,
            condition=condition,
            facts=facts,
        )

        return gateway_product_component
