from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.agents_product_component_kind import (
    AgentsProductComponentKind,
    check_agents_product_component_kind,
)
from ..models.condition import Condition, check_condition

if TYPE_CHECKING:
    from ..models.agents_facts import AgentsFacts


T = TypeVar("T", bound="AgentsProductComponent")


@_attrs_define
class AgentsProductComponent:
    """A part of the product."""

    kind: AgentsProductComponentKind
    name: str
    condition: Condition
    facts: AgentsFacts

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
        from ..models.agents_facts import AgentsFacts

        d = dict(src_dict)
        kind = check_agents_product_component_kind(d.pop("kind"))

        name = d.pop("name")

        condition = check_condition(d.pop("condition"))

        facts = AgentsFacts.from_dict(d.pop("facts"))

        agents_product_component = cls(
            kind=kind,
            name=name,
            condition=condition,
            facts=facts,
        )

        return agents_product_component
